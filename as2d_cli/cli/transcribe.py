"""`as2d transcribe`: options -> one request -> batch -> results on stdout, everything else on stderr."""

from __future__ import annotations

import signal
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer
from typer.core import TyperCommand
from typer.main import get_command

from as2d_cli.cli import completion
from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.messages import Messages
from as2d_cli.cli.settings import ConfiguredCommand, given
from as2d_cli.errors import As2dError
from as2d_cli.languages import AUTO
from as2d_cli.sources import printable

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.batch import Batch
    from as2d_cli.cli.display import TerminalDisplay
    from as2d_cli.cli.options import Options
    from as2d_cli.cli.results import Results
    from as2d_cli.report import RunReport
    from as2d_cli.requests import FileOutcome

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(
    cls=ConfiguredCommand,
    context_settings={"token_normalize_func": lambda name: name.replace("_", "-")},
    epilog="AS2D_<OPTION> in the environment and the file `as2d config path` set options, too.",
)
def transcribe(  # noqa: PLR0913, PLR0917 - one parameter per option is how typer declares them
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="Audio or video files, folders, quoted patterns (**/*.wav), or - for standard input.",
        ),
    ] = None,
    files_from: Annotated[
        str | None,
        typer.Option(
            metavar="LIST|-", allow_from_autoenv=False, help="Also the files listed there, one path a line."
        ),
    ] = None,
    null: Annotated[
        bool, typer.Option("--null", "-0", allow_from_autoenv=False, help="In LIST, paths end with NUL.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "--target",
            "-m",
            metavar="NAME",
            autocompletion=completion.models,
            help="Model whose text is wanted (see: as2d models list).",
        ),
    ] = None,
    drafter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|none",
            autocompletion=completion.drafters,
            help="Smaller model that drafts ahead [default: the pair's].",
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            "--language",
            "-l",
            metavar="CODE|auto",
            autocompletion=completion.languages,
            help="Spoken language, as code or English name.",
        ),
    ] = AUTO,
    prompt: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Text that each window is taken to follow, for names and style."),
    ] = None,
    hotwords: Annotated[
        str | None, typer.Option(metavar="LIST", help="Words to expect; they go before the prompt.")
    ] = None,
    draft_tokens: Annotated[
        str, typer.Option(metavar="N|auto", help="Draft tokens verified per step.")
    ] = AUTO,
    align: Annotated[str | None, typer.Option(hidden=True, metavar="hybrid|edit|ngram|none")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads of the target [default: all CPUs].")
    ] = None,
    output_format: Annotated[
        str | None,
        typer.Option(
            "--output-format",
            "-f",
            metavar="LIST",
            autocompletion=completion.formats,
            help="Also write files: txt,srt,vtt,tsv,json,jsonl,csv,lrc or all.",
        ),
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", "-o", metavar="DIR", help="Write the files here, not beside the input."),
    ] = None,
    word_timestamps: Annotated[
        bool,
        typer.Option(
            "--word-timestamps/--no-word-timestamps",
            show_default=False,
            help="Give the times of words in JSON.",
        ),
    ] = False,
    max_line_width: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Characters in a line of subtitles.")
    ] = None,
    max_line_count: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Lines in a subtitle.")
    ] = None,
    max_words_per_line: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Words in a line of subtitles.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare/--no-compare",
            show_default=False,
            help="Decode without drafts, too; check that the text is the same, and time both.",
        ),
    ] = False,
    vad: Annotated[
        bool,
        typer.Option(
            "--vad/--no-vad",
            show_default=False,
            help="Leave out windows in which nobody speaks; models invent text for them.",
        ),
    ] = True,
    json: Annotated[
        bool,
        typer.Option(
            "--json/--no-json",
            show_default=False,
            help="Print one JSON object per file, and one with the report.",
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite/--no-overwrite",
            show_default=False,
            help="Make all files anew, also those not made by as2d.",
        ),
    ] = False,
    fail_fast: Annotated[
        bool,
        typer.Option("--fail-fast/--no-fail-fast", show_default=False, help="End the run when a file fails."),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet/--no-quiet", "-q", show_default=False, help="Say nothing but results and errors."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose/--no-verbose", "-v", show_default=False, help="Say more.")
    ] = False,
    progress: Annotated[
        bool,
        typer.Option(
            "--progress/--no-progress", show_default=False, help="Show a bar, if stderr is a terminal."
        ),
    ] = True,
) -> None:
    """Write down what is said in audio files. The text goes to stdout, everything else to stderr."""
    from as2d_cli.cli.options import Options

    if not files and files_from is None:
        raise typer.BadParameter("Missing argument 'FILE...': nothing to transcribe.")
    options = Options(
        given=given(context),
        files=tuple(files or ()),
        files_from=files_from,
        null=null,
        model=model,
        drafter=drafter,
        language=language,
        prompt=prompt,
        hotwords=hotwords,
        draft_tokens=draft_tokens,
        align=align,
        threads=threads,
        output_format=output_format,
        output_dir=output_dir,
        word_timestamps=word_timestamps,
        max_line_width=max_line_width,
        max_line_count=max_line_count,
        max_words_per_line=max_words_per_line,
        compare=compare,
        vad=vad,
        json=json,
        overwrite=overwrite,
        fail_fast=fail_fast,
        quiet=quiet,
        verbose=verbose,
        progress=progress,
    )
    raise typer.Exit(run(options))


def command() -> TyperCommand:
    """Return the command as typer sees it, with all its options."""
    return cast("TyperCommand", get_command(app))


def run(options: Options) -> ExitCode:
    """Do what the options ask for. Raises `As2dError` if there is no way to begin or to go on."""
    from as2d_cli.batch import Batch
    from as2d_cli.cli.display import TerminalDisplay
    from as2d_cli.cli.options import batch_request
    from as2d_cli.cli.results import JsonResults, TextResults

    signal.signal(signal.SIGINT, _interrupt)
    request, notes = batch_request(options)
    messages = Messages(quiet=options.is_quiet, verbose=options.is_verbose)
    for note in notes:
        messages.note(note)
    with TerminalDisplay(messages, bar=options.progress) as display:
        batch = Batch(request, display)
        return _Run(batch, messages, display, JsonResults() if options.json else TextResults()).show()


def _interrupt(number: int, frame: object) -> NoReturn:
    """End the run in order at the first Ctrl-C, and at once at the second."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


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
        except KeyboardInterrupt:
            self._conclude(self.batch.report(interrupted=True))
            return ExitCode.INTERRUPTED
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
