"""Notices that a drafter or a target repeats itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_PERIOD = 16
MIN_REPEATS = 4
MIN_TOKENS = 24
MAX_REFRAIN = 64
MIN_REFRAINS = 3


class LoopDetector:
    """Watches a token sequence for the same 1 to 16 tokens at least 4 times and 24 tokens long.

    The limits keep ordinary repetition ("no, no, no", a refrain, digits) below the threshold.
    """

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=MAX_PERIOD)
        self._equal = [0] * (MAX_PERIOD + 1)  # by period: trailing tokens equal to the one a period ago

    def push(self, token: int) -> bool:
        """Take the next token; return True when the sequence now ends in a loop."""
        looped = False
        for period in range(1, MAX_PERIOD + 1):
            same = period <= len(self._recent) and self._recent[-period] == token
            self._equal[period] = self._equal[period] + 1 if same else 0
            looped |= self._equal[period] + period >= max(MIN_REPEATS * period, MIN_TOKENS)
        self._recent.append(token)
        return looped


def has_loop(tokens: Sequence[int]) -> bool:
    """Tell whether a finished text repeats itself somewhere: as `LoopDetector` says, or whole sentences.

    Those are 17 to 64 tokens three times in a row, which nobody says by chance.

    >>> has_loop([7, 8, 9] * 8), has_loop(range(100))
    (True, False)
    """
    ids = np.asarray(tokens)
    for period in range(1, min(MAX_REFRAIN, len(ids) // MIN_REFRAINS) + 1):
        needed = max(MIN_REPEATS * period, MIN_TOKENS) if period <= MAX_PERIOD else MIN_REFRAINS * period
        if period + _longest_run(ids[period:] == ids[:-period]) >= needed:
            return True
    return False


def _longest_run(flags: NDArray[np.bool_]) -> int:
    """Return the most True values in a row."""
    breaks = np.flatnonzero(np.concatenate([[True], ~flags, [True]]))
    return int(np.diff(breaks).max()) - 1
