"""Passages in which the target's next words may stand: finished windows and the request's own text.

The drafter does not know where in them the target is, nor whether it is in any: `PassageAligner` looks
that up as the target writes. Where nothing fits, nothing is proposed and nothing is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from as2d_cli.plugin import DraftView, Earlier, Tokenizer

MAX_TOKENS = 8192
"""Tokens of a draft, about 80 dense windows: searching them takes under a hundredth of a target pass."""
_MAX_GIVEN = MAX_TOKENS // 2
_BEGINNING = 8
"""Tokens that tell whether two windows begin alike."""


class LookupDrafter:
    """Drafts from text alone."""

    languages = None
    passages = True

    def __init__(self, vocabulary: Tokenizer) -> None:
        """Draft in `vocabulary`."""
        self._encode = lru_cache(maxsize=4)(lambda text: vocabulary.encode(text)[:_MAX_GIVEN] if text else [])

    def draft(self, view: DraftView) -> list[int]:
        """Return the likeliest passages one after the other, at most `MAX_TOKENS`."""
        request = view.request
        texts = (request.prompt, request.question, request.passage)
        given = self._encode(" ".join(["", *(text.strip() for text in texts if text)]))
        draft: list[int] = []
        for tokens in dict.fromkeys(_ranked(view)):
            if len(draft) + len(tokens) + len(given) > MAX_TOKENS:
                break
            draft += tokens
        return draft + given


def _ranked(view: DraftView) -> Iterator[tuple[int, ...]]:
    """Yield texts of earlier windows, the likeliest to be said again first.

    A file begins as others did, so first come the windows at the same place in other files, those with
    the commonest beginning leading; then all, the latest first.
    """
    latest = view.earlier[::-1]
    alike = [one for one in latest if one.index == view.index and one.group != view.group]
    yield from (one.tokens for one in _commonest_first(alike))
    yield from (one.tokens for one in latest)


def _commonest_first(windows: Sequence[Earlier]) -> list[Earlier]:
    beginnings = Counter(one.tokens[:_BEGINNING] for one in windows)
    return sorted(windows, key=lambda one: -beginnings[one.tokens[:_BEGINNING]])
