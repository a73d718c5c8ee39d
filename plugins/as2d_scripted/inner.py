"""The scripted drafter in the target's process: it reads the script off the target's encoder output."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from as2d_cli.plugin import END, DecodeError, DraftView
from as2d_scripted.drafter import ScriptedDrafter

_MAX_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class ScriptedInnerDrafter:
    """Drafts like `drafter`, all at once, for a target with the same tokenizer."""

    drafter: ScriptedDrafter
    languages: None = None
    passages: bool = False

    def draft(self, view: DraftView) -> list[int]:
        """Return the draft of one window. Raises `DecodeError` if the target shows no states."""
        if view.states is None:
            raise DecodeError("this target does not show its encoder's output")
        tokens = islice(self.drafter.draft(view.states, view.request), _MAX_TOKENS)
        end_id = self.drafter.tokenizer.size
        return [end_id if token.id == END else token.id for token in tokens]
