"""Shows the work of a command while it goes on: results on stdout, everything else on stderr."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from as2d_cli.cli.exit_codes import ExitCode, code_of_stop
from as2d_cli.cli.output.messages import Messages
from as2d_cli.domain.errors import As2dError
from as2d_cli.system.printable import printable

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.ask.types import Answer
    from as2d_cli.batch.report import RunReport
    from as2d_cli.batch.work import FileOutcome
    from as2d_cli.cli.output.display import TerminalDisplay

_Outcome = TypeVar("_Outcome")
_Outcome_co = TypeVar("_Outcome_co", covariant=True)
_AnyReport = TypeVar("_AnyReport", bound="Report")
_Report_co = TypeVar("_Report_co", bound="Report", covariant=True)


class Report(Protocol):
    """What a command reports at its end."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been done yet."""

    @property
    def is_doubtful(self) -> bool:
        """Whether its lines are to be shown whatever the user wants to see."""

    @property
    def succeeded(self) -> bool:
        """Whether all was done."""

    @property
    def parts(self) -> tuple[RunReport, ...]:
        """The runs that it is of."""


class Work(Protocol[_Outcome_co, _Report_co]):
    """What a command does, piece by piece."""

    def run(self) -> Generator[_Outcome_co, None, None]:
        """Yield what becomes of each piece."""

    def report(self, *, interrupted: bool = False) -> _Report_co:
        """Return what has been done so far."""


@dataclass(frozen=True, slots=True)
class Showing(Generic[_Outcome, _AnyReport]):
    """Where what comes of work goes."""

    messages: Messages
    display: TerminalDisplay
    outcome: Callable[[_Outcome], None]
    """Shows one outcome."""
    report: Callable[[_AnyReport], None]
    """Shows the report on stdout."""

    def show(self, work: Work[_Outcome, _AnyReport]) -> ExitCode:
        """Do the work and show its outcomes; the report is shown however it ends."""
        try:
            with closing(work.run()) as outcomes:
                for outcome in outcomes:
                    with self.display.aside():
                        self.outcome(outcome)
        except KeyboardInterrupt:
            self._conclude(work.report(interrupted=True))
            return code_of_stop()
        except As2dError:
            report = work.report(interrupted=True)
            if not report.is_empty:
                self._conclude(report)
            raise
        report = work.report()
        self._conclude(report)
        return ExitCode.OK if report.succeeded else ExitCode.SOME_FAILED

    def _conclude(self, report: _AnyReport) -> None:
        from as2d_cli.cli.output.report_lines import lines_of

        self.display.stop()
        for line in chain.from_iterable(map(lines_of, report.parts)):
            (self.messages.line if report.is_doubtful else self.messages.note)(line)
        self.report(report)


def warn(messages: Messages, outcome: FileOutcome | Answer) -> None:
    """Say on stderr what is doubtful about a file, and what is wrong with it."""
    for warning in outcome.warnings:
        messages.note(f"{printable(outcome.source)}: warning: {warning}")
    if outcome.error is not None:
        messages.failure(outcome.source, outcome.error)
