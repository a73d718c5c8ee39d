"""Puts the windows of a divided file together again, whoever decoded them and in whatever order they come."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.resume import Content
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import DecodedWindow, End, Run, WindowPiece


class LongFile:
    """One divided file."""

    def __init__(self, item: Item, *, detects: bool) -> None:
        """With `detects`, the first window that is spoken decides the language of those after it."""
        self.work = FileWork(item.input.path, item.number)
        self._question = item.question
        self.content: Content | None = None
        self._waits = detects
        self._language: str | None = None
        self._held: deque[WindowPiece] = deque()
        self._in_work = 0
        self._came: dict[int, DecodedWindow] = {}

    def read(self, run: Run, windows: Any) -> None:  # noqa: ANN401 - Ray's reference
        """Take the next run of windows."""
        self.work.handed_out += len(run.indexes)
        self._held.append(WindowPiece(self.work.number, run.indexes, windows, self._question))

    def ended(self, end: End) -> None:
        """Note that all has been read."""
        self.work.read = True
        self.work.duration_s = end.duration_s
        self.work.warnings[:0] = end.warnings
        self.work.error = self.work.error or end.error
        self.content = end.content

    def due(self) -> list[WindowPiece]:
        """Return what can be decoded now: one run after the other until the language is known, then all."""
        ready: list[WindowPiece] = []
        while self._held and not (self._waits and self._in_work):
            one = self._held.popleft()
            self._in_work += len(one.indexes)
            ready.append(replace(one, language=self._language))
        return ready

    def take(self, window: DecodedWindow) -> None:
        """Take a window, in any order."""
        self._came[window.index] = window
        self._in_work -= 1
        work = self.work
        while (now := self._came.pop(work.returned, None)) is not None:
            work.take(now.span, now.result, now.error, silent=now.silent)
            work.drafting = now.is_drafting
            if self._waits and now.result is not None and now.result.language:
                self._language, self._waits = now.result.language, False

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come, or nothing that comes can be of use."""
        return self.work.error is not None or self.work.finished
