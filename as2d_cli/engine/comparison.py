"""Decodes the same windows with drafts and without, in one run, and compares."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from as2d_cli.engine.engine import Engine
from as2d_cli.engine.run.tasks import WindowOutcome, WindowTask

BLOCK = 8
"""Windows decoded one way before they are decoded another: long enough for drafting ahead to show, short
enough for all ways to meet the same machine."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Drafted against target-only decoding of the same windows in the same run; `+` adds."""

    windows: int = 0
    identical: int = 0
    slower: int = 0
    """Windows on which the target took longer with drafts than without."""
    undecided: int = 0
    """Windows that could not be compared, because one of the two ways failed."""
    drafted_s: float = 0.0
    plain_s: float = 0.0
    """Wall time of all windows with drafts, and without on all threads."""
    differing: tuple[tuple[int, float], ...] = ()
    """Where the tokens differ: number of the file in the run, start of the window in seconds."""

    def __add__(self, other: Comparison) -> Comparison:
        """Field-wise sum."""
        return Comparison(*(getattr(self, name) + getattr(other, name) for name in Comparison.__slots__))

    @property
    def speedup(self) -> float:
        """Pooled: target-only wall time over wall time with drafts."""
        return self.plain_s / self.drafted_s if self.drafted_s else 0.0


class Compared:
    """Runs windows through an engine as the engine itself does, but both ways."""

    def __init__(self, engine: Engine, before: WindowTask | None = None) -> None:
        """Run `before`, untimed, ahead of each way: models then have nothing left over from the other."""
        self._engine = engine
        self._before = [] if before is None else [before]
        self._drafted_first = True
        self.found = Comparison()

    def run(self, tasks: Iterable[WindowTask]) -> Iterator[WindowOutcome]:
        """Decode blocks of windows both ways, first one then the other in turn; yield those with drafts."""
        source = iter(tasks)
        while block := list(islice(source, BLOCK)):
            order = (True, False) if self._drafted_first else (False, True)
            runs = {drafted: self._timed(block, drafted) for drafted in order}
            self._drafted_first = not self._drafted_first
            seconds = [runs[drafted][1] / len(block) for drafted in (True, False)]
            for ours, other in zip(runs[True][0], runs[False][0], strict=True):
                self.found += _comparison(ours, other, *seconds)
                yield ours

    def taken(self, number: int) -> Comparison:
        """Return what was found since the last time, all of it in the file `number`."""
        found, self.found = self.found, Comparison()
        return replace(found, differing=tuple((number, start_s) for _, start_s in found.differing))

    def _timed(self, block: list[WindowTask], drafted: bool) -> tuple[list[WindowOutcome], float]:
        list(self._engine.run(self._before))
        began = time.perf_counter()
        outcomes = list(self._engine.run(block, drafted=drafted))
        return outcomes, time.perf_counter() - began


def _comparison(ours: WindowOutcome, other: WindowOutcome, drafted_s: float, plain_s: float) -> Comparison:
    """Compare a window with drafts and without, which took so long."""
    if ours.result is None or other.result is None or ours.task.known_result:
        undecided = (ours.result is None) != (other.result is None)
        return Comparison(undecided=int(undecided), drafted_s=drafted_s, plain_s=plain_s)
    is_same = ours.result.tokens == other.result.tokens
    return Comparison(
        windows=1,
        identical=int(is_same),
        slower=int(ours.result.stats.wall_s > other.result.stats.wall_s),
        drafted_s=drafted_s,
        plain_s=plain_s,
        differing=() if is_same else ((ours.task.group, ours.task.window.span.start_s),),
    )
