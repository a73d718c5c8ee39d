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
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.local import local_executor
from as2d_cli.batch.pipeline import FileWork, Pipeline
from as2d_cli.batch.work import Decoded, Executor, Item, StartExecutor
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import RequestError
from as2d_cli.domain.types import Request, WindowResult
from as2d_cli.engine.comparison import Compared, Comparison
from as2d_cli.engine.engine import Engine
from as2d_cli.system.printable import printable


class AskFromAudio(AskRun):
    """A run in which the target listens and answers at once."""

    def __init__(
        self, request: AskRequest, display: Display | None = None, start: StartExecutor = local_executor
    ) -> None:
        """Prepare; `start` starts the engines of a cluster, where one is asked for."""
        self._start = start
        super().__init__(request, len(request.listening.inputs), display)
        self._compared: Compared | None = None
        self._executor: Executor | None = None

    @property
    def _found(self) -> Comparison | None:
        if self._executor is not None and self._request.compare:
            return self._executor.comparison
        return self._compared.found if self._compared else None

    def run(self) -> Generator[Answer, None, None]:
        """Yield the answers as `AskRun.run`, of whichever engines are asked for."""
        yield from super().run() if self._request.listening.cluster is None else self._counted(self._far())

    def _far(self) -> Iterator[Answer]:
        """Ask the engines of a cluster everything at once; yield the answers in order."""
        asked, listening = self._request, self._request.listening
        wanted = replace(
            listening,
            drafter=asked.drafter,
            others=(),
            auto_budget=asked.auto_budget,
            compare=asked.compare,
            decode=asked.decode,
        )
        pairs = product(listening.inputs, asked.questions)
        items = [
            Item(number, one, wants_content=False, question=question)
            for number, (one, question) in enumerate(pairs)
        ]
        self._asked = [f"{printable(item.input.path)}: {item.question}" for item in items]
        with self._start(wanted, self._display) as self._executor:
            engines = self._executor
            first, load_s = engines.await_first()
            self._check(first.spec)
            self._report.load_s = load_s
            works = engines.run([item for item in items if item.input.error is None], _ignore)
            for _, same in groupby(self._in_order(items, works), lambda answer: id(answer[0])):
                for _, answer in same:
                    self._report.nodes = engines.nodes
                    yield answer
                    if answer.question is None:  # there is nothing to hear
                        break

    def _in_order(
        self, items: Sequence[Item], works: Iterator[Decoded | None]
    ) -> Iterator[tuple[Input, Answer]]:
        """Yield the answers as their items are, each with its input."""
        early: dict[int, FileWork] = {}
        for item in items:
            began = time.perf_counter()
            while item.input.error is None and item.number not in early:
                if (decoded := next(works)) is not None:
                    early[decoded[0].number] = decoded[0]
            self._spent(began)
            answer = Answer(item.input.path, item.question)
            if item.input.error is not None:
                yield item.input, replace(answer, question=None, error=item.input.error)
                continue
            work = early.pop(item.number)
            self._report.audio_s += work.duration_s
            yield item.input, _answered(answer, work)

    def _check(self, spec: TargetSpec) -> None:
        if "ask" not in spec.tasks or spec.max_passage_tokens:
            name = self._request.target.name
            raise RequestError(f"model {name!r} does not answer questions by ear", "choose one with --reader")

    def _answers(self, engine: Engine) -> Iterator[Answer]:
        self._compared = Compared(engine) if self._request.compare else None
        self._pipeline = Pipeline(engine, compared=self._compared, vad=self._request.listening.vad)
        for one in self._request.listening.inputs:
            for question in self._request.questions:
                answer = self._answer(one, question)
                yield answer
                if answer.question is None:  # there is nothing to hear
                    break

    def _answer(self, heard: Input, question: str) -> Answer:
        """Ask about one recording, which is read anew for every question."""
        if heard.error is not None:
            return Answer(heard.path, None, error=heard.error)
        if heard.stream is not None:
            heard.stream.seek(0)
        request = Request(task="ask", language=self._request.listening.language, question=question)
        self._asked.append(f"{printable(heard.path)}: {question}")
        began = time.perf_counter()
        (work,) = self._pipeline.run([heard.source], request)
        self._spent(began)
        self._report.audio_s += work.duration_s
        return _answered(Answer(heard.path, question), work)


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
