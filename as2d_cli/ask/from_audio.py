"""Questions answered by a model that listens itself: each window of a recording is asked."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, product

from as2d_cli.ask.retrieval import is_found
from as2d_cli.ask.run import AskRun
from as2d_cli.ask.types import NOTHING_FOUND, Answer, AskRequest
from as2d_cli.batch.display import Display
from as2d_cli.batch.local import start_local
from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.work import Decoded, Executor, Item, StartExecutor
from as2d_cli.domain.types import WindowResult
from as2d_cli.engine.comparison import Comparison
from as2d_cli.system.printable import printable


class AskFromAudio(AskRun):
    """A run in which the target listens and answers at once."""

    def __init__(
        self, request: AskRequest, display: Display | None = None, start: StartExecutor = start_local
    ) -> None:
        """Prepare; `start` starts what answers."""
        super().__init__(request, len(request.listening.inputs), display)
        self._start = start
        self._executor: Executor | None = None
        self._early: dict[int, FileWork] = {}  # answered, not yet their turn

    @property
    def _comparison(self) -> Comparison | None:
        return self._executor.comparison if self._executor and self._request.compare else None

    def _answers(self) -> Generator[Answer, None, None]:
        """Hand out all questions about all recordings; yield the answers in order."""
        asked, listening = self._request, self._request.listening
        wanted = replace(
            listening,
            asks=True,
            drafter=asked.drafter,
            others=(),
            auto_budget=asked.auto_budget,
            compare=asked.compare,
            decode=asked.decode,
        )
        pairs = product(listening.inputs, asked.questions)
        items = [
            Item(number, recording, wants_content=False, question=question)
            for number, (recording, question) in enumerate(pairs)
        ]
        self._asked = [f"{printable(item.input.path)}: {item.question}" for item in items]
        with self._start(wanted, self._display) as self._executor:
            _, self._report.load_s = self._executor.await_first()
            self._report.plan = self._executor.plan
            works = self._executor.run([item for item in items if item.input.error is None], _ignore)
            for _, about_one in groupby(items, lambda item: id(item.input)):
                for answer in self._in_order(list(about_one), works):
                    self._report.nodes = self._executor.nodes
                    self._report.draft_sums = self._executor.draft_sums
                    yield answer

    def _in_order(self, items: Sequence[Item], works: Iterator[Decoded | None]) -> Iterator[Answer]:
        """Yield the answers about one recording in the order of its items; one error if it cannot be read."""
        for item in items:
            answer = self._answer(item, works)
            yield answer
            if answer.question is None:
                return

    def _answer(self, item: Item, works: Iterator[Decoded | None]) -> Answer:
        if item.input.error is not None:
            return Answer(item.input.path, None, error=item.input.error)
        began = time.perf_counter()
        while item.number not in self._early:
            if (decoded := next(works)) is not None:
                self._early[decoded[0].number] = decoded[0]
        self._spent(began)
        work = self._early.pop(item.number)
        self._report.audio_s += work.duration_s
        return _answered(Answer(item.input.path, item.question), work)


def _ignore(number: int, seconds: float, result: WindowResult | None, *, silent: bool) -> None:
    """Take a window that nobody wants to know of."""


def _answered(answer: Answer, work: FileWork) -> Answer:
    """Return the answers of all windows that have one; it rests on these windows."""
    answer = replace(answer, error=work.error, stats=work.stats, warnings=tuple(work.warnings))
    if work.error is not None:
        return answer if work.handed_out else replace(answer, question=None)
    told = [(span, text) for span, result in work.parts if (text := result.text.strip()) and is_found(text)]
    text = "\n".join(text for _, text in told) or NOTHING_FOUND
    return replace(answer, text=text, spans=tuple(span for span, _ in told))
