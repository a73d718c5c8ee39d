"""`as2d transcribe`: options -> one request -> batch -> results on stdout, everything else on stderr."""

from __future__ import annotations

import signal
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.messages import Messages
from as2d_cli.errors import As2dError, RequestError
from as2d_cli.languages import AUTO, language_code
from as2d_cli.sources import printable
from as2d_cli.tables import suggestion

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.batch import Batch, BatchRequest, FileOutcome
    from as2d_cli.cli.display import TerminalDisplay
    from as2d_cli.cli.results import Results
    from as2d_cli.decoding import AlignMode
    from as2d_cli.registry import ModelEntry, Registry
    from as2d_cli.report import RunReport

NO_DRAFTER = "none"
FORMAT_NAMES = ("txt", "srt", "vtt", "tsv", "json", "jsonl", "csv", "lrc")  # as in writers, which needs numpy
TIMED_FORMATS = frozenset(FORMAT_NAMES) - {"txt"}
WORD_FORMATS = frozenset({"json", "jsonl"})
MAX_DRAFT_TOKENS = 64

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class Options:
    """The options as typed; what they mean is in `_request`."""

    files: tuple[Path, ...]
    model: str | None
    drafter: str | None
    language: str
    draft_tokens: str
    align: str | None
    threads: int | None
    formats: str | None
    output_dir: Path | None
    word_timestamps: bool
    compare: bool
    as_json: bool
    overwrite: bool
    quiet: bool
    verbose: bool
    no_progress: bool


@app.command(context_settings={"token_normalize_func": lambda name: name.replace("_", "-")})
def transcribe(  # noqa: PLR0913, PLR0917 - one parameter per option is how typer declares them
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", show_default=False, help="Audio or video files.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "--target",
            "-m",
            metavar="NAME",
            help="Model whose text is wanted (see: as2d models list).",
        ),
    ] = None,
    drafter: Annotated[
        str | None,
        typer.Option(metavar="NAME|none", help="Smaller model that drafts ahead [default: the pair's]."),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            "--language", "-l", metavar="CODE|auto", help="Spoken language, as code or English name."
        ),
    ] = AUTO,
    draft_tokens: Annotated[
        str, typer.Option(metavar="N|auto", help="Draft tokens verified per step.")
    ] = AUTO,
    align: Annotated[str | None, typer.Option(hidden=True, metavar="hybrid|edit|ngram|none")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads of the target [default: all CPUs].")
    ] = None,
    formats: Annotated[
        str | None,
        typer.Option(
            "--output-format",
            "-f",
            metavar="LIST",
            help="Also write files: txt,srt,vtt,tsv,json,jsonl,csv,lrc or all.",
        ),
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", "-o", metavar="DIR", help="Write the files here, not beside the input."),
    ] = None,
    word_timestamps: Annotated[
        bool, typer.Option("--word-timestamps", help="Give the times of words in JSON.")
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Decode without drafts, too; check that the text is the same, and time both."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per file, and one with the report.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no progress bar.")] = False,
) -> None:
    """Write down what is said in audio files. The text goes to stdout, everything else to stderr."""
    options = Options(
        files=tuple(files),
        model=model,
        drafter=drafter,
        language=language,
        draft_tokens=draft_tokens,
        align=align,
        threads=threads,
        formats=formats,
        output_dir=output_dir,
        word_timestamps=word_timestamps,
        compare=compare,
        as_json=as_json,
        overwrite=overwrite,
        quiet=quiet,
        verbose=verbose,
        no_progress=no_progress,
    )
    raise typer.Exit(run(options))


def run(options: Options) -> ExitCode:
    """Do what the options ask for. Raises `As2dError` if there is no way to begin or to go on."""
    from as2d_cli.batch import Batch
    from as2d_cli.cli.display import TerminalDisplay
    from as2d_cli.cli.results import JsonResults, TextResults

    request = _request(options)
    messages = Messages(quiet=options.quiet, verbose=options.verbose)
    with TerminalDisplay(messages, bar=not options.no_progress) as display:
        batch = Batch(request, display)
        return _Run(batch, messages, display, JsonResults() if options.as_json else TextResults()).show()


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
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one ends at once
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
        elif outcome.is_skipped:
            self.messages.note(f"{name}: skipped, its outputs exist (--overwrite makes them anew)")
        elif outcome.kept:
            kept = ", ".join(printable(path.name) for path in outcome.kept)
            self.messages.note(f"{name}: kept {kept} (--overwrite makes them anew)")
        for path in outcome.written:
            self.messages.detail(f"{name}: wrote {printable(str(path))}")

    def _conclude(self, report: RunReport) -> None:
        self.display.stop()
        for line in report.lines():
            (self.messages.line if report.is_doubtful else self.messages.note)(line)
        self.results.report(report)


def _request(options: Options) -> BatchRequest:
    """Make sense of the options. Raises `RequestError`, or `RegistryError` for an unknown model."""
    from as2d_cli.batch import BatchRequest, usable_cpus
    from as2d_cli.registry import load_registry
    from as2d_cli.workers import DecodeSettings

    language = language_code(options.language)
    formats = _formats(options)
    registry = load_registry()
    target, drafter = _models(options, registry)
    _refuse_idle_options(options, formats, drafter)
    return BatchRequest(
        sources=options.files,
        target=target,
        drafter=drafter,
        language=language,
        timed=options.as_json or not TIMED_FORMATS.isdisjoint(formats),
        word_timestamps=options.word_timestamps,
        formats=formats,
        folder=options.output_dir,
        overwrite=options.overwrite,
        compare=options.compare,
        threads=options.threads or usable_cpus(),
        decode=DecodeSettings(_draft_tokens(options.draft_tokens), _align(options.align)),
    )


def _models(options: Options, registry: Registry) -> tuple[ModelEntry, ModelEntry | None]:
    """Return target and drafter: those asked for, else those of the pair."""
    target = registry.model(options.model or registry.pair().target)
    name = options.drafter
    if name is None:
        pairs = [registry.pair(), *registry.pairs.values()]  # the default pair's drafter before another's
        name = next((pair.drafter for pair in pairs if pair.target == target.name), NO_DRAFTER)
    drafter = None if name == NO_DRAFTER else registry.model(name)
    if not target.fits("target"):
        raise RequestError(f"model {target.name!r} can only draft", "choose another --model")
    if drafter is not None and not drafter.fits("drafter"):
        raise RequestError(f"model {drafter.name!r} cannot draft", "choose another --drafter, or none")
    return target, drafter


def _formats(options: Options) -> tuple[str, ...]:
    """Return the formats of the files to write, each once; `-o` alone means plain text."""
    if options.formats is None:
        return () if options.output_dir is None else ("txt",)
    names = [name.strip().lower() for name in options.formats.split(",") if name.strip()]
    if "all" in names:
        return FORMAT_NAMES
    for name in names:
        if name not in FORMAT_NAMES:
            raise RequestError(
                f"there is no output format {name!r}", suggestion(name, (*FORMAT_NAMES, "all"))
            )
    if not names:
        raise RequestError("-f needs at least one format", f"formats: {', '.join(FORMAT_NAMES)}, all")
    return tuple(dict.fromkeys(names))


def _draft_tokens(text: str) -> int | None:
    if text.lower() == AUTO:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MAX_DRAFT_TOKENS:
        raise RequestError(
            f"--draft-tokens cannot be {text!r}",
            f"give a number from 1 to {MAX_DRAFT_TOKENS}, or auto; --drafter none decodes without drafts",
        )
    return int(text)


def _align(text: str | None) -> AlignMode:
    from as2d_cli.decoding import AlignMode

    modes = get_args(AlignMode)
    if text is not None and text not in modes:
        raise RequestError(f"there is no alignment {text!r}", suggestion(text, modes))
    return cast("AlignMode", text or "hybrid")


def _refuse_idle_options(options: Options, formats: tuple[str, ...], drafter: ModelEntry | None) -> None:
    """Refuse an option that would do nothing: whoever gives it expects something else."""
    if drafter is None:
        for name, given in (
            ("--compare", options.compare),
            ("--draft-tokens", options.draft_tokens.lower() != AUTO),
            ("--align", options.align is not None),
        ):
            if given:
                raise RequestError(f"{name} does nothing without a drafter", "choose one with --drafter")
    if options.word_timestamps and not (options.as_json or WORD_FORMATS.intersection(formats)):
        raise RequestError("--word-timestamps does nothing without JSON", "add --json, or -f json")
    if options.overwrite and not formats:
        raise RequestError("--overwrite does nothing without files to write", "add -f or -o")
    if options.quiet and options.verbose:
        raise RequestError("--quiet and --verbose contradict each other")
