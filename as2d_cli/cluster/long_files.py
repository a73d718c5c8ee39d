"""Puts the windows of a divided file together again, whichever engines decoded them and in whatever order."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.resume import Content
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import DecodedWindow, FileEnd, WindowPiece


class LongFile:
    """A divided file."""

    def __init__(self, item: Item, *, detects_language: bool) -> None:
        """With `detects_language`, the first spoken window decides the language of those after it."""
        self.work = FileWork(item.input.path, item.number)
        self.content: Content | None = None
        self._question = item.question
        self._awaits_language = detects_language
        self._language: str | None = None
        self._waiting: deque[WindowPiece] = deque()
        self._n_in_work = 0
        self._results: dict[int, DecodedWindow] = {}  # by index, those that came before an earlier window's

    def add_chunk(self, indexes: tuple[int, ...], chunk: Any) -> None:  # noqa: ANN401 - Ray's reference
        """Add the next windows that were read."""
        self.work.handed_out += len(indexes)
        self._waiting.append(WindowPiece(self.work.number, indexes, chunk, self._question))

    def end_reading(self, end: FileEnd) -> None:
        """Note that no chunk follows."""
        self.work.read = True
        self.work.duration_s = end.duration_s
        self.work.loudness = end.loudness
        self.work.warnings[:0] = end.warnings
        self.work.error = self.work.error or end.error
        self.content = end.content

    def pop_pieces(self) -> list[WindowPiece]:
        """Return what can be decoded now: chunk after chunk until the language is known, then all."""
        pieces: list[WindowPiece] = []
        while self._waiting and not (self._awaits_language and self._n_in_work):
            piece = self._waiting.popleft()
            self._n_in_work += len(piece.indexes)
            pieces.append(replace(piece, language=self._language))
        return pieces

    def add_result(self, window: DecodedWindow) -> None:
        """Add what became of a window, in any order."""
        self._results[window.index] = window
        self._n_in_work -= 1
        work = self.work
        while (following := self._results.pop(work.returned, None)) is not None:
            work.take(following.span, following.result, following.error, silent=following.silent)
            work.drafting = following.is_drafting
            if self._awaits_language and following.result is not None and following.result.language:
                self._language, self._awaits_language = following.result.language, False

    @property
    def is_over(self) -> bool:
        """Whether all windows are back, or the file has failed and the others are of no use."""
        return self.work.error is not None or self.work.finished
