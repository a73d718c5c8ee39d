"""One run of windows through one pair of processes or several: which window goes where, and in which order.

Windows do not depend on each other, so those of one file, too, are shared out among all pairs. Their
outcomes are yielded in the order of the tasks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import wait

from as2d_cli.domain.errors import ModelError
from as2d_cli.engine.messages import Note
from as2d_cli.engine.pair import SLOTS, Pair
from as2d_cli.engine.run.lane import Lane, RunSettings
from as2d_cli.engine.run.tasks import WindowOutcome, WindowTask, Work

_DEPTH = 2
"""Windows that each of several pairs is given at a time: no longer queue, so that all end about together."""
_AHEAD = 16
"""Windows for each of several pairs that may wait for one before them: a long one holds up nobody."""


class Scheduler:
    """One run. Tasks are taken a few ahead of those in work."""

    def __init__(self, pairs: list[Pair], settings: RunSettings) -> None:
        """Run windows through `pairs`; one that cannot be kept alive is taken out, if others are left."""
        self._pairs = pairs
        self._tell = settings.tell
        self._languages = settings.ledger.languages
        self._lanes = [Lane(pair, settings) for pair in pairs]
        self._depth, self._ahead = (SLOTS, SLOTS) if len(pairs) == 1 else (_DEPTH, _AHEAD * len(pairs))
        self._works: deque[Work] = deque()  # in order, until they are yielded
        self._waiting: deque[Work] = deque()  # to be handed out before other tasks are taken

    def run(self, tasks: Iterable[WindowTask]) -> Iterator[WindowOutcome]:
        """Yield one outcome per task, in order. Raises `ModelError` if no target can be kept alive."""
        source = iter(tasks)
        try:
            while True:
                self._hand_out(source)
                if not self._works:
                    return
                while (outcome := self._works[0].outcome) is None:
                    self._listen()
                    self._hand_out(source)
                self._works.popleft()
                yield outcome
        finally:
            for lane in self._lanes:
                lane.abandon()

    def _hand_out(self, tasks: Iterator[WindowTask]) -> None:
        """Keep all pairs at work."""
        while lane := self._free_lane():
            if not self._waiting and not self._take(tasks):
                return
            if self._waiting:
                lane.hand_out(self._waiting.popleft())

    def _take(self, tasks: Iterator[WindowTask]) -> bool:
        """Take another task, unless too many are taken or there is none."""
        task = next(tasks, None) if len(self._works) < self._ahead else None
        if task is None:
            return False
        work = Work(task)
        self._works.append(work)
        if task.known_result is not None:
            work.outcome = WindowOutcome(task, task.known_result)
        else:
            self._waiting.append(work)
        return True

    def _free_lane(self) -> Lane | None:
        """Return the lane with the fewest windows in work, None if all have enough."""
        lane = min(self._lanes, key=lambda lane: len(lane.in_work))
        return lane if len(lane.in_work) < self._depth else None

    def _listen(self) -> None:
        """Take what the processes say next."""
        speaking = wait([pipe for lane in self._lanes for pipe in lane.pipes()])
        for lane in list(self._lanes):
            try:
                decided = lane.listen(speaking)
            except ModelError as error:
                self._give_up(lane, error)
                continue
            if decided is not None:
                self._decode_again(self._languages.foreign(decided.task.group, self._works))

    def _decode_again(self, works: Iterable[Work]) -> None:
        for work in works:
            work.job = work.outcome = None
            self._waiting.append(work)

    def _give_up(self, lane: Lane, error: ModelError) -> None:
        """Share out the windows of a pair among the others. Raises `error` if there are none."""
        if len(self._lanes) == 1:
            raise error
        self._tell(Note(f"{error.message}; going on with one engine less"))
        self._lanes.remove(lane)
        self._pairs.remove(lane.pair)
        lane.pair.close(at_once=True)
        self._decode_again(lane.in_work)
