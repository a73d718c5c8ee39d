"""Finds the stretches of a window that its words leave uncovered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from as2d_cli.domain.types import Span, Word

LONGEST_WORD_S = 1.2
"""A longer word covers nothing: alignment gives speech that has no words to a word beside it."""
LEAST_S = 2.0
"""Shorter stretches are pauses, or errors of word times."""


def uncovered(words: Sequence[Word], duration_s: float) -> Iterator[Span]:
    """Yield the stretches of `LEAST_S` and more without words, but such as are too long for a word.

    >>> words = [Word(" a", 0.2, 0.4), Word(" name.", 0.4, 4.0), Word(" But", 4.1, 4.4)]
    >>> [(span.start_s, span.end_s) for span in uncovered(words, 8.0)]
    [(0.4, 4.1), (4.4, 8.0)]
    """
    covering = [word for word in words if word.end_s - word.start_s <= LONGEST_WORD_S]
    begins = [0.0, *(word.end_s for word in covering)]
    ends = [*(word.start_s for word in covering), duration_s]
    for begin_s, end_s in zip(begins, ends, strict=True):
        if end_s - begin_s >= LEAST_S:
            yield Span(begin_s, end_s)
