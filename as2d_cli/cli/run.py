"""A run over many files as a command: results on stdout, everything else on stderr."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from as2d_cli.cli.exit_codes import ExitCode, code_of_stop
from as2d_cli.cli.messages import Messages
from as2d_cli.cli.parameters import BatchOptions
from as2d_cli.errors import As2dError
from as2d_cli.sources import printable

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.batch import Batch
    from as2d_cli.cli.display import TerminalDisplay
    from as2d_cli.cli.results import Results
    from as2d_cli.report import RunReport
    from as2d_cli.requests import FileOutcome


def run(options: BatchOptions) -> ExitCode:
    """Do what the options ask for. Raises `As2dError` if there is no way to begin or to go on."""
    from as2d_cli.batch import Batch
    from as2d_cli.cli.display import TerminalDisplay
    from as2d_cli.cli.options import batch_request
    from as2d_cli.cli.results import JsonResults, TextResults

    if not options.files and options.files_from is None:
        raise typer.BadParameter("Missing argument 'FILE...'.")
    request, notes = batch_request(options)
    messages = Messages(quiet=options.is_quiet, verbose=options.is_verbose)
    for note in notes:
        messages.note(note)
    with TerminalDisplay(messages, bar=options.progress) as display:
        batch = Batch(request, display)
        return _Run(batch, messages, display, JsonResults() if options.json else TextResults()).show()


@dataclass(frozen=True, slots=True)
class _Run:
    """A batch, and where what comes of it goes."""

    batch: Batch
    messages: Messages
    display: TerminalDisplay
    results: Results

    def show(self) -> ExitCode:
        """Run the batch and show its outcomes; the report is shown however it ends."""
        try:
            with closing(self.batch.run()) as outcomes:
                for outcome in outcomes:
                    with self.display.aside():
                        self._tell(outcome)
                        self.results.file(outcome)
        except KeyboardInterrupt as stop:
            self._conclude(self.batch.report(interrupted=True))
            return code_of_stop(stop)
        except As2dError:
            report = self.batch.report(interrupted=True)
            if report.done or report.failed:
                self._conclude(report)
            raise
        report = self.batch.report()
        self._conclude(report)
        return ExitCode.OK if report.succeeded else ExitCode.SOME_FAILED

    def _tell(self, outcome: FileOutcome) -> None:
        """Say on stderr what a file is to be remembered for."""
        name = printable(str(outcome.source))
        for warning in outcome.warnings:
            self.messages.note(f"{name}: warning: {warning}")
        if outcome.error is not None:
            self.messages.failure(outcome.source, outcome.error)
        for note in outcome.notes:
            self.messages.note(f"{name}: {note}")
        if outcome.is_skipped:
            said = self.messages.note if outcome.notes else self.messages.detail
            said(f"{name}: skipped, nothing is left to do")
        for path in outcome.written:
            self.messages.detail(f"{name}: wrote {printable(str(path))}")

    def _conclude(self, report: RunReport) -> None:
        self.display.stop()
        for line in report.lines():
            (self.messages.line if report.is_doubtful else self.messages.note)(line)
        self.results.report(report)
