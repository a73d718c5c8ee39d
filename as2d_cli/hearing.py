"""Questions answered by a model that listens itself: each window of a recording is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from as2d_cli.answers import NOTHING_FOUND, Answer, AskRequest
from as2d_cli.asking import Asking
from as2d_cli.comparison import Comparison
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.display import Display
from as2d_cli.engine import Engine
from as2d_cli.errors import RequestError
from as2d_cli.inputs import Input
from as2d_cli.passages import is_found
from as2d_cli.pipeline import FileWork, Pipeline
from as2d_cli.printable import printable
from as2d_cli.types import Request


class Hearing(Asking):
    """A run in which the target listens and answers at once."""

    def __init__(self, request: AskRequest, display: Display | None = None) -> None:
        """Prepare."""
        super().__init__(request, len(request.listening.inputs), display)
        self._comparison: Comparison | None = Comparison() if request.compare else None

    @property
    def _found(self) -> Comparison | None:
        return self._comparison

    def _check(self, spec: TargetSpec) -> None:
        if "ask" not in spec.tasks or spec.max_passage_tokens:
            name = self._request.target.name
            raise RequestError(f"model {name!r} does not answer questions by ear", "choose one with --reader")

    def _answers(self, engine: Engine) -> Iterator[Answer]:
        for one in self._request.listening.inputs:
            for question in self._request.questions:
                answer = self._answer(engine, one, question)
                yield answer
                if answer.question is None:  # there is nothing to hear
                    break

    def _answer(self, engine: Engine, heard: Input, question: str) -> Answer:
        """Ask about one recording, which is read anew for every question."""
        if heard.error is not None:
            return Answer(heard.path, None, error=heard.error)
        if heard.stream is not None:
            heard.stream.seek(0)
        listening = self._request.listening
        request = Request(task="ask", language=listening.language, question=question)
        self._asked.append(f"{printable(str(heard.path))}: {question}")
        began = time.perf_counter()
        pipeline = Pipeline(engine, request, compare=self._request.compare, vad=listening.vad)
        (work,) = pipeline.run([heard.source], len(self._asked) - 1)
        self._spent(began)
        self._report = replace(self._report, audio_s=self._report.audio_s + work.duration_s)
        if self._comparison is not None and pipeline.comparison is not None:
            self._comparison += pipeline.comparison
        return _answered(Answer(heard.path, question), work)


def _answered(answer: Answer, work: FileWork) -> Answer:
    """Return the answers of all windows that have one; it rests on these windows."""
    answer = replace(answer, error=work.error, stats=work.stats, warnings=tuple(work.warnings))
    if work.error is not None:
        return answer if work.handed_out else replace(answer, question=None)
    told = [(span, text) for span, result in work.parts if (text := result.text.strip()) and is_found(text)]
    text = "\n".join(text for _, text in told) or NOTHING_FOUND
    return replace(answer, text=text, spans=tuple(span for span, _ in told))
