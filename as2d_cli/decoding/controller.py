"""Chooses how many candidates ride along with the pending token.

The more often the draft has just been right, the likelier it stays right; how many rows pay is a
question of that and of the measured cost of a target pass by row count, which is a staircase.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import inf, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import Step

Floats = NDArray[np.float64]

MAX_CANDIDATES = 23
"""Default cap: 24 rows are the last stair edge worth having on any CPU measured."""

# First run length of each bucket, and what drafts of 3 to 30 % word error did there before any was seen.
_BUCKET_STARTS = (0, 1, 2, 3, 5, 9, 17)
_PRIOR = (0.5, 0.6, 0.75, 0.85, 0.9, 0.93, 0.95)
_PRIOR_WEIGHT = 6.0
_DECAY = 0.995
_BUCKETS = tuple(bisect_right(_BUCKET_STARTS, run) - 1 for run in range(_BUCKET_STARTS[-1] + 1))

# Shape of the cost of a pass by rows, until measured: Whisper base, int8 weights, two AVX2 threads.
_SHAPE_ROWS = (1, 2, 3, 5, 8, 16, 24)
_SHAPE_MS = (5.3, 5.4, 5.9, 8.3, 10.7, 18.4, 26.0)
_EWMA = 0.1
_MAX_SURPRISE = 2.0
_SAME = 0.05
"""Share of a cost by which it may move before the curve through all costs is drawn anew."""


class Policy(Protocol):
    """Decides how many candidates to verify. Whatever it says, the text stays the same."""

    def choose(self, available: int, run: int, drafting: bool) -> int:
        """Return how many of `available` candidates to verify after `run` right draft tokens."""

    def learn(self, run: int, trials: int, right: int) -> None:
        """Note that from run length `run` on, `trials` draft tokens were tested and `right` were right."""

    def timed(self, rows: int, ms: float, drafting: bool) -> None:
        """Note that a target pass of `rows` rows took `ms`, with the drafter at work or not."""


class Hazard:
    """How likely the next draft token is right, by the number of right ones just before it.

    `counts` continues an earlier `to_counts()`: seven trials, then seven successes. Raises
    DecodeError if they are not 14 numbers with 0 <= successes <= trials.
    """

    def __init__(self, counts: Sequence[float] | None = None) -> None:
        size = len(_PRIOR)
        known = [0.0] * (2 * size) if counts is None else [float(count) for count in counts]
        if len(known) != 2 * size:
            raise DecodeError(f"a hazard has {2 * size} counts, not {len(known)}")
        self._trials, self._right = known[:size], known[size:]
        counts_of = zip(self._trials, self._right, strict=True)
        if not all(0 <= right <= trials < inf for trials, right in counts_of):
            raise DecodeError("hazard counts must be finite, with 0 <= successes <= trials")

    def to_counts(self) -> list[float]:
        """Return seven trials, then seven successes, as plain numbers."""
        return [*self._trials, *self._right]

    @property
    def rates(self) -> list[float]:
        """Estimated probability by bucket of run length: 0, 1, 2, 3-4, 5-8, 9-16, 17 and more."""
        counts = zip(self._trials, self._right, _PRIOR, strict=True)
        return [(right + _PRIOR_WEIGHT * prior) / (trials + _PRIOR_WEIGHT) for trials, right, prior in counts]

    @property
    def doubts(self) -> list[float]:
        """Standard deviation of each of the `rates`: the less was seen, the greater."""
        return [
            sqrt(rate * (1 - rate) / (trials + _PRIOR_WEIGHT + 1))
            for rate, trials in zip(self.rates, self._trials, strict=True)
        ]

    def learn(self, run: int, trials: int, right: int) -> None:
        """Count `trials` tokens tested from run length `run` on, of which the first `right` were right."""
        if not trials:
            return
        self._trials = [_DECAY * count for count in self._trials]
        self._right = [_DECAY * count for count in self._right]
        for number, bucket in enumerate(_buckets(run, trials)):
            self._trials[bucket] += 1
            self._right[bucket] += number < right

    def expected_tokens(self, run: int, candidates: int) -> list[float]:
        """Return the expected tokens of a step with 0..`candidates` candidates."""
        rates, survival, expected = self.rates, 1.0, [1.0]
        for bucket in _buckets(run, candidates):
            survival *= rates[bucket]
            expected.append(expected[-1] + survival)
        return expected


def tally(steps: Iterable[Step]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return trials and successes by bucket of run length; nothing where nothing was tested."""
    trials, right = [0] * len(_PRIOR), [0] * len(_PRIOR)
    for step in steps:
        for number, bucket in enumerate(_buckets(step.run, step.tested)):
            trials[bucket] += 1
            right[bucket] += number < step.right
    return (tuple(trials), tuple(right)) if any(trials) else ((), ())


def bucket_of(run: int) -> int:
    """Return the bucket of a run length."""
    return _buckets(run, 1)[0]


def _buckets(run: int, count: int) -> list[int]:
    longest = len(_BUCKETS) - 1
    return [_BUCKETS[min(length, longest)] for length in range(run, run + count)]


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
                if rows < 1 or not 0 < ms < inf:
                    raise DecodeError(f"a target pass of {rows} rows cannot take {ms} ms")
        self._curves: dict[bool, Floats] = {}
        self._drawn = {drafting: dict(table) for drafting, table in self._tables.items()}

    def table(self, drafting: bool) -> dict[int, float]:
        """Return what has been measured: {rows: ms}."""
        return dict(self._tables[drafting])

    def ms(self, max_rows: int, drafting: bool) -> Floats:
        """Cost of 1..`max_rows` rows, never falling, shape (max_rows,)."""
        curve = self._curves.get(drafting)
        if curve is None or len(curve) < max_rows:
            # More rows that measured cheaper also bound the cost of fewer: these could be padded.
            curve = np.minimum.accumulate(self._raw(max_rows, drafting)[::-1])[::-1]
            self._curves[drafting] = curve
        return curve[:max_rows]

    def update(self, rows: int, ms: float, drafting: bool) -> None:
        """Move the cost of `rows` rows towards a new measurement; one outlier moves it little."""
        if not 0 < ms < inf:
            return
        table = self._tables[drafting]
        if (known := table.get(rows)) is not None:
            ms = known + _EWMA * (min(ms, _MAX_SURPRISE * known) - known)
        elif any(self._tables.values()):
            ms = min(ms, _MAX_SURPRISE * float(self._raw(rows, drafting)[rows - 1]))
        table[rows] = ms
        drawn = self._drawn[drafting].get(rows)
        if drawn is None or abs(ms - drawn) > _SAME * drawn:
            self._curves.clear()
            self._drawn = {drafting: dict(table) for drafting, table in self._tables.items()}

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
        expected, ms = self.hazard.expected_tokens(run, most), self.costs.ms(most + 1, drafting).tolist()
        gain = [tokens / cost for tokens, cost in zip(expected, ms, strict=True)]
        return gain.index(max(gain))

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
