"""The options of the commands that work on audio files: each is declared here once, for all that have it.

A field with `Annotated[..., typer.Option]` is an option. One that may come from the environment
(`allow_from_autoenv`, which is typer's default) may also come from the configuration file: it is a setting.
`batch.options` says what they mean; this module must be quick to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import typer
from typer.models import OptionInfo

from as2d_cli.cli.options import completion
from as2d_cli.domain.languages import AUTO


def _switch(name: str, meaning: str, *short: str) -> OptionInfo:
    """Return an option to turn something on or off, with its `short` forms; help shows no default."""
    declared: OptionInfo = typer.Option(f"--{name}/--no-{name}", *short, show_default=False, help=meaning)
    return declared


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all: the options as they are set."""

    given: frozenset[str] = frozenset()
    """Names of those that are on the command line, and not only in environment or configuration file."""


@dataclass(frozen=True, kw_only=True)
class InputOptions(Options):
    """What to work on."""

    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="Audio or video files, folders, quoted patterns (**/*.wav), or - for standard input.",
        ),
    ] = None
    files_from: Annotated[
        str | None,
        typer.Option(
            metavar="LIST|-", allow_from_autoenv=False, help="Also the files listed there, one path a line."
        ),
    ] = None
    null: Annotated[
        bool, typer.Option("--null", "-0", allow_from_autoenv=False, help="In LIST, paths end with NUL.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class AudioOptions(Options):
    """What to hear of files that hold more than one thing to hear."""

    audio_track: Annotated[
        str | None,
        typer.Option(
            metavar="N|LANG",
            autocompletion=completion.languages,
            help="Audio track to hear, by number or language [default: the file's].",
        ),
    ] = None
    channel: Annotated[
        str | None,
        typer.Option(
            metavar="N|left|right|mix|each",
            help="Channel to hear; mix: all; each: all apart, as speakers [default: those with speech].",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PairOptions(Options):
    """Who listens."""

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
    ] = None
    drafter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|none",
            autocompletion=completion.drafters,
            help="Smaller model that drafts ahead [default: the pair's].",
        ),
    ] = None
    model_options: Mapping[str, str | None] = field(default_factory=dict)
    """Values of the options that plugins declare for their models, by name. They stand here in help."""


@dataclass(frozen=True, kw_only=True)
class SpeechOptions(Options):
    """What is known of the speech."""

    language: Annotated[
        str,
        typer.Option(
            "--language",
            "-l",
            metavar="CODE|auto|each",
            autocompletion=completion.languages,
            help="Spoken language, as code or English name; each: detected in each window.",
        ),
    ] = AUTO
    prompt: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Text that each window is taken to follow, for names and style."),
    ] = None
    hotwords: Annotated[
        str | None, typer.Option(metavar="LIST", help="Words to expect; they go before the prompt.")
    ] = None
    vad: Annotated[
        bool, _switch("vad", "Leave out windows in which nobody speaks; models invent text for them.")
    ] = True
    rescue: Annotated[
        bool,
        _switch("rescue", "Decode windows again that repeat themselves, have no end or leave out speech."),
    ] = True


@dataclass(frozen=True, kw_only=True)
class BudgetOptions(Options):
    """What may be spent on drafts, and on all."""

    budget: Annotated[
        str,
        typer.Option(
            metavar="N|auto", help="Most draft tokens verified per step; auto: as measured on this device."
        ),
    ] = AUTO
    draft_tokens: Annotated[
        str, typer.Option(metavar="N|auto", help="Draft tokens verified in every step, however they fare.")
    ] = AUTO
    latency_quantile: Annotated[
        str,
        typer.Option(
            metavar="Q", help="Choose drafts only if no more than 1 - Q of the windows would be slower."
        ),
    ] = "0.9"
    memory_limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Choose no drafter that needs more memory in all: 600MB, 1.5GB."),
    ] = None
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads of all targets [default: all CPUs].")
    ] = None
    jobs: Annotated[
        str,
        typer.Option(
            metavar="N|auto", help="Targets that share the windows; auto: as many as pay for what there is."
        ),
    ] = AUTO
    compare: Annotated[
        bool,
        _switch("compare", "Decode without drafts, too; check that the text is the same, and time both."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class FileOptions(Options):
    """Files to write, and what they look like."""

    output_format: Annotated[
        str | None,
        typer.Option(
            "--output-format",
            "-f",
            metavar="LIST",
            autocompletion=completion.formats,
            help="Also write files: txt,srt,vtt,ass,tsv,json,jsonl,csv,lrc or all.",
        ),
    ] = None
    output_dir: Annotated[
        str | None,  # of a path only one of two slashes would be left
        typer.Option("--output-dir", "-o", metavar="DIR", help="Write the files here, not beside the input."),
    ] = None
    overwrite: Annotated[
        bool,
        _switch("overwrite", "Make all files anew, also those not made by as2d."),
    ] = False
    word_timestamps: Annotated[bool, _switch("word-timestamps", "Give the times of words in JSON.")] = False
    show_confidence: Annotated[
        bool, _switch("show-confidence", "Colour words by their probability, if stdout is a terminal.")
    ] = False
    subtitle_style: Annotated[
        str,
        typer.Option(
            metavar="plain|netflix|bbc",
            help="Lines, lengths and pauses of subtitles as broadcasters want them.",
        ),
    ] = "plain"
    highlight_words: Annotated[
        bool, _switch("highlight-words", "Underline the word that is spoken in srt and vtt.")
    ] = False
    max_line_width: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Characters in a line of subtitles; wide ones count two."),
    ] = None
    max_line_count: Annotated[int | None, typer.Option(min=1, metavar="N", help="Lines in a subtitle.")] = (
        None
    )
    max_words_per_line: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Words in a line of subtitles.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Options):
    """How a run goes on, and what it says."""

    json: Annotated[bool, _switch("json", "Print one JSON object per file, and one with the report.")] = False
    fail_fast: Annotated[bool, _switch("fail-fast", "End the run when a file fails.")] = False
    quiet: Annotated[bool, _switch("quiet", "Say nothing but results and errors.", "-q")] = False
    verbose: Annotated[bool, _switch("verbose", "Say more.", "-v")] = False
    progress: Annotated[bool, _switch("progress", "Show a bar, if stderr is a terminal.")] = True

    @property
    def is_quiet(self) -> bool:
        """Whether only results and errors are to be seen; a flag to the contrary goes before a setting."""
        return self.quiet and not (self.verbose and "verbose" in self.given)

    @property
    def is_verbose(self) -> bool:
        """Whether more than usual is to be seen."""
        return self.verbose and not self.is_quiet


@dataclass(frozen=True, kw_only=True)
class EngineOptions(Options):
    """Where the work is done."""

    engine: Annotated[
        str,
        typer.Option(
            metavar="local|ray", help="Run on this machine, or on a Ray cluster (needs the extra as2d[ray])."
        ),
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|auto", help="The cluster's head [default: one of this machine, for this run]."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class BatchOptions(
    ReportOptions,
    EngineOptions,
    FileOptions,
    BudgetOptions,
    SpeechOptions,
    AudioOptions,
    PairOptions,
    InputOptions,
):
    """All of `as2d transcribe`; the bases stand in reverse, as dataclasses order their fields."""


@dataclass(frozen=True, kw_only=True)
class ToOptions(Options):
    """The language to write in."""

    to: Annotated[
        str,
        typer.Option(
            metavar="CODE",
            autocompletion=completion.written_languages,
            help="Language to write in, as code or English name. Whisper models write English only.",
        ),
    ] = "en"


@dataclass(frozen=True, kw_only=True)
class TranslateOptions(BatchOptions, ToOptions):
    """All of `as2d translate`."""


@dataclass(frozen=True, kw_only=True)
class QuestionOptions(Options):
    """What to answer, and who answers."""

    question: Annotated[
        list[str] | None,
        typer.Option(
            "--question",
            "-q",
            metavar="TEXT",
            allow_from_autoenv=False,
            help="What to answer; may be given more than once.",
        ),
    ] = None
    questions: Annotated[
        str | None,
        typer.Option(
            metavar="LIST|-", allow_from_autoenv=False, help="Also the questions listed there, one a line."
        ),
    ] = None
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|none",
            autocompletion=completion.models,
            help="Language model that answers from the transcript; none: the one that listens does "
            "[default: default_reader in models.toml, or none if that can].",
        ),
    ] = None
    reader_drafter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|none",
            autocompletion=completion.drafters,
            help="Smaller model that drafts the answers [default: the reader's pair's].",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class AskOptions(
    ReportOptions,
    EngineOptions,
    BudgetOptions,
    SpeechOptions,
    AudioOptions,
    PairOptions,
    InputOptions,
    QuestionOptions,
):
    """All of `as2d ask`. The reader's drafts are what a budget or a comparison is for."""

    json: Annotated[
        bool,
        _switch("json", "Print one JSON object per answer, and one with the report."),
    ] = False
    # without the short form: -q is the question
    quiet: Annotated[bool, _switch("quiet", "Say nothing but answers and errors.")] = False


COMMANDS: dict[str, type[Options]] = {
    "transcribe": BatchOptions,
    "translate": TranslateOptions,
    "ask": AskOptions,
}
"""The commands that take settings, with their options. An option of one name is the same setting in all."""
