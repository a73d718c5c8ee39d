"""Finds the target's place in a collection of passages, of which any may come next, or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from as2d_cli.domain.types import TokenIds

MAX_SUFFIX = 24
"""Committed tokens compared at most; a longer agreement says no more."""

PRIOR = (40, 40, 40, 20, 10, 10, 10, 10, 5, 10, 11, 8.5, 9, 9.5)
"""How often places found by a few tokens were right, as counts of a `Hazard`: seldom, on speech that says
nothing twice. Without such a beginning the first windows would be checked for what is not there."""


class PassageAligner:
    """Resumes after the longest suffix of the committed text that occurs in the passages.

    Unlike `Aligner` it expects no order and no progress: at every step it looks everywhere, and where
    not even the last committed token occurs there is nothing to propose. Of equally long matches the
    first counts, so passages should come likeliest first. Before the first token the first passage is
    proposed from its beginning.
    """

    def __init__(self) -> None:
        self._passages: TokenIds = np.empty(0, np.int32)
        self._committed: list[int] = []
        self.cursor: int | None = 0
        """Index of the next token to propose, None for none."""
        self.run = 0
        """Committed tokens just before the cursor that are the same in the passages."""

    @property
    def seen(self) -> int:
        """Tokens fed so far."""
        return len(self._passages)

    def feed(self, ids: Sequence[int], *, complete: bool) -> None:
        """Take more of the passages."""
        if ids:
            self._passages = np.append(self._passages, np.array(ids, np.int32))

    def observe(self, tokens: Sequence[int]) -> None:
        """Take newly committed tokens."""
        self._committed.extend(tokens)
        # just after a match, where there must be a token to propose
        ends = np.flatnonzero(self._passages[:-1] == self._committed[-1]) + 1
        run = int(len(ends) > 0)
        while 0 < run < min(MAX_SUFFIX, len(self._committed)):
            within = ends[ends > run]
            longer = within[self._passages[within - 1 - run] == self._committed[-1 - run]]
            if not len(longer):
                break
            ends, run = longer, run + 1
        self.run = run
        self.cursor = int(ends[0]) if run else None
