"""Questions answered from a transcript: one model listens and writes it, another reads it.

Nothing that the first writes is hidden from the drafter of the second: the transcript is part of the
request, as the question is. What no drafter sees is the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from as2d_cli.ask.retrieval import Passage, choose, rests_on
from as2d_cli.ask.run import AskRun
from as2d_cli.ask.types import NOTHING_FOUND, Answer, AskRequest
from as2d_cli.batch.display import Display
from as2d_cli.batch.local import start_local
from as2d_cli.batch.report import RunReport
from as2d_cli.batch.run import BatchRun
from as2d_cli.batch.session import LoadedModels, Models, load_models
from as2d_cli.batch.work import FileOutcome, StartExecutor
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import RequestError
from as2d_cli.domain.types import Request, Window, WindowResult
from as2d_cli.engine.comparison import Compared, Comparison
from as2d_cli.engine.engine import Engine
from as2d_cli.engine.messages import ModelRef
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.models import loader
from as2d_cli.system.printable import printable

_NOTHING_ELSE = Request(task="ask", question="?", passage="")


class AskFromTranscript(AskRun):
    """A run in which the target reads transcripts."""

    def __init__(
        self, request: AskRequest, display: Display | None = None, start: StartExecutor = start_local
    ) -> None:
        """Prepare; `start` starts what listens. Raises `RequestError`, before any work."""
        self._batch = BatchRun(request.listening, display, start)
        super().__init__(request, self._batch.report().files, display)
        self._runner: Engine | Compared | None = None

    @property
    def _comparison(self) -> Comparison | None:
        return self._runner.found if isinstance(self._runner, Compared) else None

    def _listening(self, interrupted: bool) -> RunReport:
        """Return how the transcripts came about. It waited for answers, or listened on meanwhile."""
        report = self._batch.report(interrupted=interrupted)
        at_work_s = 0.0 if report.nodes else report.stats.wall_s
        return replace(report, wall_s=max(at_work_s, report.wall_s - self._report.wall_s))

    def _check(self, spec: TargetSpec) -> None:
        if "ask" not in spec.tasks or not spec.max_passage_tokens:
            name = self._request.target.name
            raise RequestError(f"model {name!r} does not answer from a text", "choose another with --reader")

    def _answers(self) -> Generator[Answer, None, None]:
        with self._models() as models:
            yield from self._read(models.target, models.engine)

    @contextmanager
    def _models(self) -> Iterator[LoadedModels]:
        """Load the reader and its drafter, and let this device's profile have its say."""
        asked = self._request
        wanted = Models(
            asked.target,
            asked.drafter,
            asked.listening.threads,
            auto_budget=asked.auto_budget,
            memory_limit_bytes=asked.listening.memory_limit_bytes,
            decode=asked.decode,
        )
        with load_models(wanted, self._display) as models:
            self._check(models.engine.target_spec)
            self._report.plan = models.choose_plan()
            self._report.load_s = time.perf_counter() - models.began
            yield models

    def _read(self, reader: ModelRef, engine: Engine) -> Iterator[Answer]:
        count = loader.token_counter(reader.entry, reader.path)
        questions = self._request.questions
        cutter = _Cutter(count, engine.target_spec.max_passage_tokens, questions)
        before = WindowTask(-1, _nothing(), _NOTHING_ELSE)
        runner = Compared(engine, before) if self._request.compare else engine
        self._runner = runner
        for outcome in self._batch.run():
            answer = Answer(outcome.source, None, error=outcome.error, warnings=outcome.warnings)
            if outcome.transcript is None:
                yield answer
                continue
            passages = [cutter.passage(outcome, question) for question in questions]
            tasks = [self._task(outcome, *one) for one in zip(questions, passages, strict=True)]
            began = time.perf_counter()
            for passage, found in zip(passages, runner.run(tasks), strict=True):
                self._spent(began)
                yield _answered(
                    replace(answer, question=found.task.request.question, error=found.error),
                    passage,
                    found.result,
                )
                began = time.perf_counter()

    def _task(self, outcome: FileOutcome, question: str, passage: Passage) -> WindowTask:
        request = Request(task="ask", question=question, passage=passage.text)
        known_result = None if passage.segments else WindowResult(NOTHING_FOUND, (), None)
        self._asked.append(f"{printable(outcome.source)}: {question}")
        return WindowTask(len(self._asked) - 1, _nothing(), request, known_result)


class _Cutter:
    """Cuts transcripts to what the reader has room for."""

    def __init__(self, count: Callable[[str], int], room: int, questions: Sequence[str]) -> None:
        """Share `room` tokens with each question. Raises `RequestError` for one that leaves too few."""
        self._count = count
        self._room = {question: room - count(question) for question in questions}
        for left in self._room.values():
            if left < room // 2:
                raise RequestError(
                    f"a question of {room - left} tokens is too long, the model takes {room // 2}",
                    "shorten it",
                )

    def passage(self, outcome: FileOutcome, question: str) -> Passage:
        """Return what of the transcript the question is put to."""
        segments = outcome.transcript.segments if outcome.transcript else ()
        return choose(segments, question, self._room[question], self._count)


def _answered(answer: Answer, passage: Passage, result: WindowResult | None) -> Answer:
    """Add what the reader made of the question, if it came to anything."""
    answer = replace(answer, is_whole=passage.is_whole)
    if result is None:
        return answer
    text = result.text.strip()
    doubt = ("an answer repeats itself or has no end: check it",) if result.is_doubtful else ()
    return replace(
        answer,
        text=text,
        spans=rests_on(passage, answer.question or "", text),
        stats=result.stats,
        warnings=answer.warnings + doubt,
    )


def _nothing() -> Window:
    """Return the window of a model that does not listen."""
    return Window(0, 0, np.zeros(0, np.float32))
