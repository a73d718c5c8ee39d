"""The state of every file of a run: brings together what actors and splitters send, decides what is finished.

No Ray here: engines are numbers, and references to chunks are passed on as they come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from as2d_cli.batch.pipeline import NOTHING_SAID, FileWork
from as2d_cli.batch.resume import Content
from as2d_cli.batch.work import Decoded, Item, OnWindow
from as2d_cli.cluster.long_files import LongFile
from as2d_cli.cluster.messages import (
    CHUNK_WINDOWS,
    WHOLE,
    DecodedFile,
    DecodedWindow,
    FileEnd,
    LongFileFound,
    Piece,
)
from as2d_cli.cluster.queue import ATTEMPTS, WorkQueue
from as2d_cli.domain.errors import As2dError, DecodeError
from as2d_cli.engine.comparison import Comparison

_CHUNKS_AHEAD = 3
"""Chunks of long files that are read ahead for each engine."""


class Tracker:
    """The files of a run. Each is open until it is finished or has failed, which happens once."""

    def __init__(self, items: Sequence[Item], on_window: OnWindow, *, detects_language: bool) -> None:
        """Begin with `items`. With `detects_language`, a file's first spoken window decides its language."""
        self._queue = WorkQueue(items)
        self._open = {item.number: item for item in items}
        self._on_window, self._detects_language = on_window, detects_language
        self._long: dict[int, LongFile] = {}
        self.comparison = Comparison()
        """What both ways of decoding came to, if they are compared."""
        self.finished: deque[Decoded] = deque()
        """Files that are finished or have failed, for the caller to take."""
        self.to_split: deque[Item] = deque()
        """Long files that no splitter has begun to read, for the caller to take."""

    @property
    def is_over(self) -> bool:
        """Whether no file is open."""
        return not self._open

    def is_open(self, number: int) -> bool:
        """Tell whether a file is neither finished nor failed."""
        return number in self._open

    def next_piece(self, engine: int, n_engines: int) -> Piece | None:
        """Return what an engine, one of `n_engines`, is to do next, None if it is to be given nothing."""
        return self._queue.next_piece(engine, n_engines)

    def handle_long_file(self, engine: int, event: LongFileFound) -> None:
        """Have a file divided that an engine did not decode."""
        if self._queue.accept(engine, (event.number, WHOLE)):
            item = self._open[event.number]
            self._long[item.number] = LongFile(item, detects_language=self._detects_language)
            self.to_split.append(item)

    def handle_file(self, engine: int, event: DecodedFile) -> float:
        """Finish a whole file; return how many seconds of it are new."""
        work = event.work
        failed = isinstance(work.error, DecodeError)
        if not self._queue.accept(engine, (event.number, WHOLE), failed=failed):
            return 0.0
        self.comparison += event.comparison
        seconds = [span.new_s for span, _ in work.parts]
        for length_s, (_, result) in zip(seconds, work.parts, strict=True):
            self._on_window(event.number, length_s, result, silent=result == NOTHING_SAID)
        self._finish(work, event.content)
        return sum(seconds)

    def handle_window(self, engine: int, event: DecodedWindow) -> float:
        """Add a window to its long file; return how many seconds of it are new."""
        failed = isinstance(event.error, DecodeError)
        if not self._queue.accept(engine, (event.number, event.index), failed=failed):
            return 0.0
        self.comparison += event.comparison
        seconds = event.span.new_s
        self._on_window(event.number, seconds, event.result, silent=event.silent)
        self._long[event.number].add_result(event)
        self._advance(event.number)
        return seconds

    def remove_engine(self, engine: int, error: As2dError) -> None:
        """Let others do what a lost engine had; the file that engines were lost in too often fails."""
        key = self._queue.remove_engine(engine)
        if key is not None:
            why = f"engines were lost in it {ATTEMPTS} times, the last time: {error.message}"
            self.fail_file(key[0], DecodeError(why))

    def fail_file(self, number: int, error: As2dError) -> None:
        """Let a file fail, if it is open."""
        if number in self._open:
            work = FileWork(self._open[number].input.path, number)
            if number in self._long:
                work = self._long[number].work
            work.error = error
            self._finish(work, None)

    def wants_chunk(self, number: int, n_engines: int) -> bool:
        """Tell whether to take the next chunk of a file, as `n_engines` soon need it.

        It is wanted of a file that is not open, too: its splitter is then to be stopped.
        """
        if number not in self._long:
            return True
        ahead = sum(long.work.handed_out - long.work.returned for long in self._long.values())
        return ahead < _CHUNKS_AHEAD * CHUNK_WINDOWS * n_engines

    def add_chunk(self, number: int, indexes: tuple[int, ...], chunk: Any) -> None:  # noqa: ANN401 - Ray's reference
        """Add the next windows of a long file."""
        if number in self._long:
            self._long[number].add_chunk(indexes, chunk)
            self._advance(number)

    def end_reading(self, number: int, end: FileEnd) -> None:
        """Note that a long file has been read."""
        if number in self._long:
            self._long[number].end_reading(end)
            self._advance(number)

    def _advance(self, number: int) -> None:
        """Finish a long file if it is over, else hand out what can be decoded of it."""
        long = self._long[number]
        if long.is_over:
            if long.work.error is None:
                long.work.conclude()
            self._finish(long.work, long.content)
        else:
            self._queue.add_windows(long.pop_pieces())

    def _finish(self, work: FileWork, content: Content | None) -> None:
        self._queue.drop_file(work.number)
        item = self._open.pop(work.number)
        work.error = item.named(work.error) if work.error else None
        self._long.pop(work.number, None)
        self.finished.append((work, content))
