"""Drafts made in the target's process, and what they may draw on: the windows finished before."""

from __future__ import annotations

from as2d_cli.decoding import EMPTY, DraftReader, finished_draft
from as2d_cli.decoding.inner import DraftView, Earlier, InnerDrafter, states_of
from as2d_cli.decoding.protocols import TargetSession
from as2d_cli.domain.errors import As2dError, DecodeError, described
from as2d_cli.domain.types import Request
from as2d_cli.models.loader import show_where

MAX_EARLIER = 2000
"""Finished windows kept, the latest: over ten hours of speech in a few megabytes."""


class InnerDrafts:
    """An inner drafter at work for one target.

    Windows have a place in the batch, (group, index). A window is drafted from those before it only, in
    whatever order and however often windows are decoded: what compares ways to decode shows no drafter
    a text that it could not have had.
    """

    def __init__(self, drafter: InnerDrafter, vocab_size: int, plugin: str) -> None:
        """Draft for a target with `vocab_size` ids; the drafter is of the plugin of this name."""
        self.plugin = plugin
        self.passages = bool(drafter.passages)
        """Whether drafts are passages to be searched, not one text each."""
        self._drafter = drafter
        self._vocab_size = vocab_size
        self._texts: dict[tuple[int, int], tuple[int, ...]] = {}

    def draft(self, place: tuple[int, int], request: Request, session: TargetSession) -> DraftReader:
        """Return the draft of an opened window. Raises `DecodeError` for whatever the drafter raises."""
        try:
            languages = self._drafter.languages
            if languages is not None and session.language not in languages:
                return EMPTY
            earlier = [Earlier(*key, self._texts[key]) for key in sorted(self._texts) if key < place]
            ids = self._drafter.draft(DraftView(*place, request, states_of(session), earlier))
            return finished_draft(ids, self._vocab_size) if len(ids) else EMPTY
        except As2dError:
            raise
        except BaseException as error:  # a drafter may fail in any way, and may only ever cost speed
            show_where(error)
            raise DecodeError(f"the drafter failed: {described(error)}") from error

    def remember(self, place: tuple[int, int], tokens: tuple[int, ...]) -> None:
        """Take the text of a finished window."""
        self._texts[place] = tokens
        if len(self._texts) > MAX_EARLIER:
            del self._texts[min(self._texts)]
