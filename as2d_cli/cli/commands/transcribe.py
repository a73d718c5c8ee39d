"""`as2d transcribe`: what is said, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.options.parameters import BatchOptions
from as2d_cli.cli.options.settings import configured
from as2d_cli.cli.output.messages import Messages
from as2d_cli.cli.output.showing import Showing, warn
from as2d_cli.system.printable import printable

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from collections.abc import Callable

    from as2d_cli.batch.work import FileOutcome
    from as2d_cli.cli.output.results import Results
    from as2d_cli.domain.types import Transcript


def transcribe(options: BatchOptions) -> ExitCode:
    """Write down what is said in audio files. The text goes to stdout, everything else to stderr."""
    return run_files(options)


app = configured(transcribe, BatchOptions)


def run_files(options: BatchOptions) -> ExitCode:
    """Do what the options ask for. Raises `As2dError` if there is no way to begin or to go on."""
    from as2d_cli.api import executor_for
    from as2d_cli.batch.run import BatchRun
    from as2d_cli.cli.options.request import read_request
    from as2d_cli.cli.output.display import TerminalDisplay
    from as2d_cli.cli.output.results import JsonResults, TextResults

    if not options.files and options.files_from is None:
        raise typer.BadParameter("Missing argument 'FILE...'.")
    request, notes = read_request(options)
    messages = Messages(quiet=options.is_quiet, verbose=options.is_verbose)
    for note in notes:
        messages.note(note)
    with TerminalDisplay(messages, bar=options.progress) as display:
        results: Results = JsonResults() if options.json else TextResults(_writer(options))

        def show(outcome: FileOutcome) -> None:
            _tell(messages, outcome)
            results.file(outcome)

        return Showing(messages, display, show, results.report).show(
            BatchRun(request, display, executor_for(request))
        )


def _writer(options: BatchOptions) -> Callable[[Transcript], str]:
    """Return what makes a text of a transcript."""
    if options.show_confidence:
        from as2d_cli.cli.output.confidence import write_coloured  # rich is slow to import

        return write_coloured
    from as2d_cli.transcripts.formats import write_txt

    return write_txt


def _tell(messages: Messages, outcome: FileOutcome) -> None:
    """Say on stderr what a file is to be remembered for."""
    name = printable(outcome.source)
    warn(messages, outcome)
    for note in outcome.notes:
        messages.note(f"{name}: {note}")
    if outcome.is_skipped:
        said = messages.note if outcome.notes else messages.detail
        said(f"{name}: skipped, nothing is left to do")
    for path in outcome.written:
        messages.detail(f"{name}: wrote {printable(path)}")
