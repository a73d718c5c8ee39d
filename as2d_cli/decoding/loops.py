"""Notices that a drafter has begun to repeat itself."""

from __future__ import annotations

from collections import deque

MAX_PERIOD = 16
MIN_REPEATS = 4
MIN_TOKENS = 24


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
