"""A run of questions about recordings, whoever answers them: counting and the report."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

from as2d_cli.ask.types import Answer, AskReport, AskRequest
from as2d_cli.batch.display import Display
from as2d_cli.batch.report import RunReport
from as2d_cli.engine.comparison import Comparison


class AskRun(ABC):
    """One run. `report` can be asked for at any time, also after an interruption."""

    def __init__(self, request: AskRequest, files: int, display: Display | None = None) -> None:
        """Prepare to ask about so many files."""
        self._request = request
        self._display = display or Display()
        self._report = RunReport(
            request.target.name,
            request.drafter.name if request.drafter else None,
            files=files * len(request.questions),
            noun="question",
        )
        self._asked: list[str] = []  # every question put so far, with its file

    def run(self) -> Generator[Answer, None, None]:
        """Yield the answers, recording by recording; one error for a recording that fails.

        Close the generator to end the run early.

        Raises `ModelError`, `PluginError` or `RequestError` if there is no way to go on.
        """
        with closing(self._answers()) as answers:
            for answer in answers:
                self._report.done += answer.text is not None
                self._report.failed += answer.error is not None
                self._report.stats += answer.stats
                yield answer
                if answer.error is not None and self._request.listening.fail_fast:
                    self._report.stopped = True
                    return

    def report(self, *, interrupted: bool = False) -> AskReport:
        """Return what has been done so far."""
        found = self._comparison
        return AskReport(
            self._listening(interrupted),
            replace(
                self._report,
                wall_s=found.drafted_s if found and not self._report.nodes else self._report.wall_s,
                comparison=found,
                differing=tuple(self._asked[number] for number, _ in (found.differing if found else ())),
                interrupted=interrupted,
            ),
        )

    @property
    @abstractmethod
    def _comparison(self) -> Comparison | None:
        """What comparing came to so far, if it was asked for. Its files are numbers in `_asked`."""

    @abstractmethod
    def _answers(self) -> Generator[Answer, None, None]:
        """Load the models, and yield what becomes of each question."""

    def _listening(self, interrupted: bool) -> RunReport | None:
        """Return how the transcripts came about, if there are any."""
        return None

    def _spent(self, began: float) -> None:
        """Count the time since `began` as spent on answers."""
        self._report.wall_s += time.perf_counter() - began
