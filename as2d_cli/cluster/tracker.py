"""Where all that engines and readers send comes together: what is finished, has failed, is to be done again.

No Ray here: engines are numbers, and references to windows are passed on as they come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from as2d_cli.batch.pipeline import NOTHING_SAID, FileWork
from as2d_cli.batch.resume import Content
from as2d_cli.batch.work import Decoded, Heard, Item
from as2d_cli.cluster.long_files import LongFile
from as2d_cli.cluster.messages import (
    RUN_WINDOWS,
    WHOLE,
    DecodedFile,
    DecodedWindow,
    End,
    FoundLong,
    Piece,
    Run,
)
from as2d_cli.cluster.queue import ATTEMPTS, WorkQueue
from as2d_cli.domain.errors import As2dError, DecodeError
from as2d_cli.engine.comparison import Comparison

_RUNS_AHEAD = 3
"""Runs of windows of a long file that are read ahead for each engine."""


class Tracker:
    """The work of one run."""

    def __init__(self, items: Sequence[Item], heard: Heard, *, detects: bool) -> None:
        """Begin with `items`. With `detects`, a file's first spoken window decides its language."""
        self._queue = WorkQueue(items)
        self._items = {item.number: item for item in items}
        self._heard, self._detects = heard, detects
        self._long: dict[int, LongFile] = {}
        self.comparison = Comparison()
        """What both ways of decoding came to, if they are compared."""
        self.done: deque[Decoded] = deque()
        """Files that are finished or have failed."""
        self.to_read: deque[Item] = deque()
        """Long files that nobody has begun to read."""

    @property
    def is_over(self) -> bool:
        """Whether no file is left."""
        return not self._items

    def next_for(self, engine: int, engines: int) -> Piece | None:
        """Return what an engine, one of so many, is to be given now, if anything."""
        return self._queue.next_for(engine, engines)

    def found_long(self, engine: int, body: FoundLong) -> None:
        """Note that a file is to be divided."""
        if self._queue.came(engine, (body.number, WHOLE)):
            item = self._items[body.number]
            self._long[item.number] = LongFile(item, detects=self._detects)
            self.to_read.append(item)

    def decoded_file(self, engine: int, body: DecodedFile) -> float:
        """Take a whole file; return how many seconds of it are new."""
        work = body.work
        if not self._queue.came(engine, (body.number, WHOLE), failed=isinstance(work.error, DecodeError)):
            return 0.0
        self.comparison += body.comparison
        seconds = [span.end_s - span.start_s for span, _ in work.parts]
        for length_s, (_, result) in zip(seconds, work.parts, strict=True):
            self._heard(body.number, length_s, result, silent=result == NOTHING_SAID)
        self._finish(work, body.content)
        return sum(seconds)

    def decoded_window(self, engine: int, body: DecodedWindow) -> float:
        """Take a window of a long file; return how many seconds of it are new."""
        failed = isinstance(body.error, DecodeError)
        if not self._queue.came(engine, (body.number, body.index), failed=failed):
            return 0.0
        self.comparison += body.comparison
        seconds = body.span.end_s - body.span.start_s
        self._heard(body.number, seconds, body.result, silent=body.silent)
        self._long[body.number].take(body)
        self._go_on(body.number)
        return seconds

    def lost(self, engine: int, error: As2dError) -> None:
        """Give what an engine had to others, and up what was lost too often."""
        for number, _ in self._queue.lost(engine):
            why = f"engines were lost in it {ATTEMPTS} times, the last time: {error.message}"
            self.give_up(number, DecodeError(why))

    def give_up(self, number: int, error: As2dError) -> None:
        """Let a file fail that may be in work; nothing happens if it is finished."""
        if number in self._items:
            work = FileWork(self._items[number].input.path, number)
            if number in self._long:
                work = self._long[number].work
            work.error = error
            self._finish(work, None)

    def is_open(self, number: int) -> bool:
        """Tell whether a file is not finished."""
        return number in self._items

    def has_room(self, number: int, engines: int) -> bool:
        """Tell whether more of a long file is to be read, for so many engines. One over is in no way."""
        if number not in self._long:
            return True
        ahead = sum(long.work.handed_out - long.work.returned for long in self._long.values())
        return ahead < _RUNS_AHEAD * RUN_WINDOWS * engines

    def read(self, number: int, run: Run, windows: Any) -> None:  # noqa: ANN401 - Ray's reference
        """Take the next windows of a long file."""
        if number in self._long:
            self._long[number].read(run, windows)
            self._go_on(number)

    def ended(self, number: int, end: End) -> None:
        """Note that a long file has been read."""
        if number in self._long:
            self._long[number].ended(end)
            self._go_on(number)

    def _go_on(self, number: int) -> None:
        long = self._long[number]
        if long.is_over:
            if long.work.error is None:
                long.work.conclude()
            self._finish(long.work, long.content)
        else:
            self._queue.add(long.due())

    def _finish(self, work: FileWork, content: Content | None) -> None:
        self._queue.drop(work.number)
        item = self._items.pop(work.number)
        work.error = item.named(work.error) if work.error else None
        self._long.pop(work.number, None)
        self.done.append((work, content))
