"""Questions about recordings: a model that listens writes a transcript, one that reads answers from it.

Nothing that the first writes is hidden from the drafter of the second: the transcript is part of the
request, as the question is. What no drafter sees is the answer. A model that listens and answers by itself
is asked about each window of a recording.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from as2d_cli import plugins, weights
from as2d_cli.batch import Batch, Display
from as2d_cli.comparison import Compared
from as2d_cli.engine import Engine, EngineSettings, WindowTask
from as2d_cli.errors import As2dError, RequestError
from as2d_cli.passages import Passage, choose, is_found, rests_on
from as2d_cli.registry import ModelEntry
from as2d_cli.report import RunReport
from as2d_cli.requests import DRAFTER_THREADS, BatchRequest, FileOutcome
from as2d_cli.selection import Selection
from as2d_cli.sources import printable
from as2d_cli.types import DecodeStats, Request, Span, Window, WindowResult
from as2d_cli.workers import DecodeSettings, ModelRef

NOTHING_FOUND = "Not in the recording."
"""The answer to every question about a recording in which nothing is said."""
_NOTHING_ELSE = Request(task="ask", question="?", passage="")


@dataclass(frozen=True, slots=True)
class AskRequest:
    """All that is asked for."""

    listening: BatchRequest
    """The recordings, and how they are transcribed."""
    questions: tuple[str, ...]
    reader: ModelEntry
    drafter: ModelEntry | None = None
    """The reader's."""
    auto_budget: bool = False
    """Whether this device's profile decides if the reader's drafter is used, and how much."""
    compare: bool = False
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    """How the reader uses drafts."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one question about one recording."""

    source: Path
    question: str | None
    """None: the recording failed before anything could be asked about it."""
    text: str | None = None
    """None: there is an error."""
    spans: tuple[Span, ...] = ()
    """Where in the recording the answer comes from, seconds; nothing for one that is not there."""
    is_whole: bool = True
    """Whether the model was given all of the transcript."""
    error: As2dError | None = None
    stats: DecodeStats = field(default_factory=DecodeStats)
    warnings: tuple[str, ...] = ()

    @property
    def is_found(self) -> bool:
        """Whether the recording tells."""
        return self.text is not None and is_found(self.text)


@dataclass(frozen=True, slots=True)
class AskReport:
    """Both halves of a run."""

    listening: RunReport
    answering: RunReport

    @property
    def succeeded(self) -> bool:
        """Whether every question about every recording was answered."""
        return self.listening.succeeded and self.answering.succeeded

    @property
    def is_doubtful(self) -> bool:
        """Whether a comparison was asked for and did not find everything identical."""
        return self.answering.is_doubtful

    def lines(self) -> list[str]:
        """Return the report as text."""
        return [*self.listening.lines(), *self.answering.lines()]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {"listening": self.listening.as_dict(), "answering": self.answering.as_dict()}


class Asking:
    """One run. `report` can be asked for at any time, also after an interruption."""

    def __init__(self, request: AskRequest, display: Display | None = None) -> None:
        """Prepare. Raises `RequestError`, before any work."""
        self._request = request
        self._display = display or Display()
        self._batch = Batch(request.listening, self._display)
        drafter = request.drafter.name if request.drafter else None
        questions = self._batch.report().files * len(request.questions)
        self._report = RunReport(request.reader.name, drafter, files=questions, noun="question")
        self._runner: Engine | Compared | None = None
        self._asked: list[str] = []  # name of every question put so far, by its group

    def run(self) -> Generator[Answer, None, None]:
        """Yield the answers, recording by recording; one error for a recording that fails.

        Close the generator to end the run early.

        Raises `ModelError`, `PluginError` or `RequestError` if there is no way to go on.
        """
        with self._engine() as engine:
            room = engine.target_spec.max_passage_tokens
            reader = _Reader(self._counter(), room, self._request.questions)
            before = WindowTask(-1, _nothing(), _NOTHING_ELSE)
            self._runner = Compared(engine, before) if self._request.compare else engine
            for outcome in self._batch.run():
                for answer in self._answers(reader, outcome):
                    yield self._counted(answer)
                    if answer.error is not None and self._request.listening.fail_fast:
                        self._report = replace(self._report, stopped=True)
                        return

    def report(self, *, interrupted: bool = False) -> AskReport:
        """Return what has been done so far."""
        found = self._runner.found if isinstance(self._runner, Compared) else None
        listening = self._batch.report(interrupted=interrupted)
        return AskReport(
            replace(listening, wall_s=max(0.0, listening.wall_s - self._report.wall_s)),  # it had to wait
            replace(
                self._report,
                wall_s=found.drafted_s if found else self._report.wall_s,
                comparison=found,
                differing=tuple(self._asked[group] for group, _ in (found.differing if found else ())),
                interrupted=interrupted,
            ),
        )

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        """Load the reader and its drafter, and let this device's profile have its say."""
        asked, budget = self._request, None
        threads = asked.listening.threads
        settings = EngineSettings(
            self._model(asked.reader, threads),
            self._model(asked.drafter, DRAFTER_THREADS) if asked.drafter else None,
            asked.decode,
        )
        self._reader_ref = settings.target
        began = time.perf_counter()
        limit = asked.listening.memory_limit_bytes
        selection = Selection(settings, (), limit, self._display.note)
        if asked.auto_budget:
            settings, budget = selection.stored()
        with Engine(settings, note=self._display.note, progress=self._display.steps) as engine:
            if "ask" not in engine.target_spec.tasks or not engine.target_spec.max_passage_tokens:
                raise RequestError(
                    f"model {asked.reader.name!r} does not answer from a text", "choose another with --reader"
                )
            if asked.auto_budget and budget is None and engine.is_drafting:
                budget = selection.first(engine)
            self._report = replace(self._report, budget=budget, load_s=time.perf_counter() - began)
            yield engine

    def _model(self, entry: ModelEntry, threads: int) -> ModelRef:
        with self._display.fetching() as progress:
            return ModelRef(entry, weights.ensure(entry, progress), threads)

    def _counter(self) -> Callable[[str], int]:
        """Return what counts the reader's tokens of a text."""
        tokenizer = plugins.load_tokenizer(self._reader_ref.entry, self._reader_ref.path)
        return lambda text: len(tokenizer.encode(text))

    def _answers(self, reader: _Reader, outcome: FileOutcome) -> Iterator[Answer]:
        """Put all questions about one recording."""
        failed = Answer(outcome.source, None, error=outcome.error, warnings=outcome.warnings)
        if outcome.transcript is None:
            yield failed
            return
        passages = [reader.passage(outcome, question) for question in self._request.questions]
        tasks = [self._task(outcome, one) for one in zip(self._request.questions, passages, strict=True)]
        assert self._runner is not None
        began = time.perf_counter()
        results = self._runner.run(tasks)
        for question, passage, found in zip(self._request.questions, passages, results, strict=True):
            self._report = replace(self._report, wall_s=self._report.wall_s + time.perf_counter() - began)
            answer = replace(failed, question=question, error=found.error, is_whole=passage.is_whole)
            if found.result is not None:
                answer = _answered(answer, passage, found.result)
            yield answer
            began = time.perf_counter()

    def _task(self, outcome: FileOutcome, asked: tuple[str, Passage]) -> WindowTask:
        question, passage = asked
        group = len(self._asked)
        self._asked.append(f"{printable(str(outcome.source))}: {question}")
        request = Request(task="ask", question=question, passage=passage.text)
        settled = None if passage.segments else WindowResult(NOTHING_FOUND, (), None)
        return WindowTask(group, _nothing(), request, settled)

    def _counted(self, answer: Answer) -> Answer:
        self._report = replace(
            self._report,
            done=self._report.done + (answer.text is not None),
            failed=self._report.failed + (answer.question is not None and answer.error is not None),
            stats=self._report.stats + answer.stats,
        )
        return answer


class _Reader:
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


def _answered(answer: Answer, passage: Passage, result: WindowResult) -> Answer:
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
