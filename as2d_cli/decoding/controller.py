"""Chooses how many candidates ride along with the pending token.

The more often the draft has just been right, the likelier it stays right; how many rows pay is a
question of that and of the measured cost of a target pass by row count, which is a staircase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from as2d_cli.errors import DecodeError

Floats = NDArray[np.float64]

MAX_CANDIDATES = 23
"""Default cap: 24 rows are the last stair edge worth having on any CPU measured."""

# First run length of each bucket, and what drafts of 3 to 30 % word error did there before any was seen.
_BUCKET_STARTS = (0, 1, 2, 3, 5, 9, 17)
_PRIOR = np.array((0.5, 0.6, 0.75, 0.85, 0.9, 0.93, 0.95))
_PRIOR_WEIGHT = 6.0
_DECAY = 0.995
_BUCKETS = np.searchsorted(_BUCKET_STARTS, np.arange(_BUCKET_STARTS[-1] + 1), side="right") - 1

# Shape of the cost of a pass by rows, until measured: Whisper base, int8 weights, two AVX2 threads.
_SHAPE_ROWS = (1, 2, 3, 5, 8, 16, 24)
_SHAPE_MS = (5.3, 5.4, 5.9, 8.3, 10.7, 18.4, 26.0)
_EWMA = 0.1
_MAX_SURPRISE = 2.0


class Policy(Protocol):
    """Decides how many candidates to verify. Whatever it says, the text stays the same."""

    def choose(self, available: int, run: int, drafting: bool) -> int:
        """Return how many of `available` candidates to verify after `run` right draft tokens."""

    def learn(self, run: int, trials: int, right: int) -> None:
        """Take that from run length `run` on, `trials` draft tokens were tested and `right` were right."""

    def timed(self, rows: int, ms: float, drafting: bool) -> None:
        """Take that a target pass of `rows` rows took `ms`, with the drafter at work or not."""


class Hazard:
    """How likely the next draft token is right, by the number of right ones just before it.

    `counts` continues an earlier `to_counts()`: seven trials, then seven successes. Raises
    DecodeError if they are not 14 numbers with 0 <= successes <= trials.
    """

    def __init__(self, counts: Sequence[float] | None = None) -> None:
        table = np.zeros((2, len(_PRIOR)))
        if counts is not None:
            if len(counts) != table.size:
                raise DecodeError(f"a hazard has {table.size} counts, not {len(counts)}")
            table = np.array(counts, dtype=np.float64).reshape(table.shape)
        trials, right = table
        if not (np.isfinite(table).all() and (right >= 0).all() and (right <= trials).all()):
            raise DecodeError("hazard counts must be finite, with 0 <= successes <= trials")
        self._trials, self._right = trials, right

    def to_counts(self) -> list[float]:
        """Return seven trials, then seven successes, as plain numbers."""
        return [*self._trials.tolist(), *self._right.tolist()]

    @property
    def rates(self) -> list[float]:
        """Estimated probability by bucket of run length: 0, 1, 2, 3-4, 5-8, 9-16, 17 and more."""
        rates: list[float] = self._rates().tolist()
        return rates

    def learn(self, run: int, trials: int, right: int) -> None:
        """Count `trials` tokens tested from run length `run` on, of which the first `right` were right."""
        if not trials:
            return
        self._trials *= _DECAY
        self._right *= _DECAY
        buckets = _buckets(run, trials)
        np.add.at(self._trials, buckets, 1.0)
        np.add.at(self._right, buckets[:right], 1.0)

    def expected_tokens(self, run: int, candidates: int) -> Floats:
        """Return the expected tokens of a step with 0..`candidates` candidates, shape (candidates + 1,)."""
        survival = np.cumprod(self._rates()[_buckets(run, candidates)])
        expected: Floats = 1.0 + np.concatenate(([0.0], np.cumsum(survival)))
        return expected

    def _rates(self) -> Floats:
        rates: Floats = (self._right + _PRIOR_WEIGHT * _PRIOR) / (self._trials + _PRIOR_WEIGHT)
        return rates


def _buckets(run: int, count: int) -> NDArray[np.intp]:
    lengths = np.minimum(run + np.arange(count), _BUCKET_STARTS[-1])
    buckets: NDArray[np.intp] = _BUCKETS[lengths]
    return buckets


class StepCosts:
    """Milliseconds of a target pass by row count, with the drafter idle and with it at work.

    `idle` and `busy` are measured tables {rows: ms}. Row counts not measured follow the usual shape
    scaled to the measured ones around them; each table likewise follows the other where it has gaps.
    Raises DecodeError if a row count or a time is not positive.
    """

    def __init__(
        self, idle: Mapping[int, float] | None = None, busy: Mapping[int, float] | None = None
    ) -> None:
        self._tables = {False: dict(idle or {}), True: dict(busy or {})}
        for table in self._tables.values():
            for rows, ms in table.items():
                if rows < 1 or not 0 < ms < float("inf"):
                    raise DecodeError(f"a target pass of {rows} rows cannot take {ms} ms")

    def table(self, drafting: bool) -> dict[int, float]:
        """Return what has been measured: {rows: ms}."""
        return dict(self._tables[drafting])

    def ms(self, max_rows: int, drafting: bool) -> Floats:
        """Cost of 1..`max_rows` rows, never falling, shape (max_rows,)."""
        # More rows that measured cheaper also bound the cost of fewer: these could be padded.
        bounded: Floats = np.minimum.accumulate(self._raw(max_rows, drafting)[::-1])[::-1]
        return bounded[:max_rows]

    def update(self, rows: int, ms: float, drafting: bool) -> None:
        """Move the cost of `rows` rows towards a new measurement; one outlier moves it little."""
        if not 0 < ms < float("inf"):
            return
        table = self._tables[drafting]
        if not any(self._tables.values()):
            table[rows] = ms
            return
        if (known := table.get(rows)) is not None:
            table[rows] = known + _EWMA * (min(ms, _MAX_SURPRISE * known) - known)
        else:
            table[rows] = min(ms, _MAX_SURPRISE * float(self._raw(rows, drafting)[rows - 1]))

    def _raw(self, max_rows: int, drafting: bool) -> Floats:
        """Cost of 1..N rows, N at least `max_rows` and every measured row count."""
        other, own = self._tables[not drafting], self._tables[drafting]
        rows = np.arange(1, max(max_rows, *other, *own, 1) + 1)
        curve = _shape(rows)
        for table in (other, own):
            if table:
                known = np.array(sorted(table))
                scale = np.array([table[int(row)] for row in known]) / curve[known - 1]
                curve = curve * np.interp(rows, known, scale)
        return curve


def _shape(rows: NDArray[np.int_]) -> Floats:
    slope = (_SHAPE_MS[-1] - _SHAPE_MS[-2]) / (_SHAPE_ROWS[-1] - _SHAPE_ROWS[-2])
    beyond = slope * np.maximum(rows - _SHAPE_ROWS[-1], 0)
    shape: Floats = np.interp(rows, _SHAPE_ROWS, _SHAPE_MS) + beyond
    return shape


class Controller:
    """Verifies as many candidates as give the most expected tokens per millisecond, 0..`cap`."""

    def __init__(
        self, costs: StepCosts | None = None, hazard: Hazard | None = None, cap: int = MAX_CANDIDATES
    ) -> None:
        self.costs = costs or StepCosts()
        self.hazard = hazard or Hazard()
        self.cap = cap

    def choose(self, available: int, run: int, drafting: bool) -> int:
        """Return the best number of candidates; on equal gain the smaller."""
        most = min(available, self.cap)
        if most <= 0:
            return 0
        gain = self.hazard.expected_tokens(run, most) / self.costs.ms(most + 1, drafting)
        return int(np.argmax(gain))

    def learn(self, run: int, trials: int, right: int) -> None:
        """Update the hazard."""
        self.hazard.learn(run, trials, right)

    def timed(self, rows: int, ms: float, drafting: bool) -> None:
        """Update the cost table."""
        self.costs.update(rows, ms, drafting)


class FixedBudget:
    """Always verifies `candidates` candidates, or as many as there are."""

    def __init__(self, candidates: int) -> None:
        if candidates < 0:
            raise DecodeError(f"the number of draft tokens cannot be {candidates}", "give 0 or more")
        self._candidates = candidates

    def choose(self, available: int, run: int, drafting: bool) -> int:
        """Return the fixed number, bounded by what is available."""
        return min(self._candidates, available)

    def learn(self, run: int, trials: int, right: int) -> None:
        """Nothing to learn."""

    def timed(self, rows: int, ms: float, drafting: bool) -> None:
        """Nothing to learn."""
