"""What the options of `as2d transcribe` mean: checked, completed from the registry, one request."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from as2d_cli.decoding import AlignMode
from as2d_cli.device import usable_cpus
from as2d_cli.errors import RequestError
from as2d_cli.inputs import STDIN, Inputs, find_inputs, read_list
from as2d_cli.languages import AUTO, language_code
from as2d_cli.registry import ModelEntry, load_registry
from as2d_cli.requests import WORD_FORMATS, BatchRequest, joined_prompt
from as2d_cli.subtitles import Layout
from as2d_cli.tables import suggestion
from as2d_cli.workers import DecodeSettings
from as2d_cli.writers import FORMATS, SUBTITLES

ALL_FORMATS = "all"
MAX_DRAFT_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Options:
    """The options as they are set; what they mean is for `batch_request` to say."""

    given: frozenset[str]
    """Names of those that are on the command line, and not only in environment or configuration file."""
    files: tuple[str, ...]
    files_from: str | None
    null: bool
    model: str | None
    drafter: str | None
    language: str
    prompt: str | None
    hotwords: str | None
    draft_tokens: str
    align: str | None
    threads: int | None
    output_format: str | None
    output_dir: Path | None
    word_timestamps: bool
    max_line_width: int | None
    max_line_count: int | None
    max_words_per_line: int | None
    compare: bool
    vad: bool
    json: bool
    overwrite: bool
    fail_fast: bool
    quiet: bool
    verbose: bool
    progress: bool

    @property
    def is_quiet(self) -> bool:
        """Whether only results and errors are to be seen; a flag to the contrary goes before a setting."""
        return self.quiet and not (self.verbose and "verbose" in self.given)

    @property
    def is_verbose(self) -> bool:
        """Whether more than usual is to be seen."""
        return self.verbose and not self.is_quiet


def batch_request(options: Options) -> tuple[BatchRequest, tuple[str, ...]]:
    """Make sense of the options; return what is asked for, and what to tell of the search for inputs.

    Raises `RequestError`, or `RegistryError` for an unknown model.
    """
    language = language_code(options.language)
    formats = _formats(options)
    target, drafter = load_registry().choose(options.model, options.drafter)
    _refuse_idle_options(options, formats, drafter)
    _refuse_contradictions(options)
    decode = DecodeSettings(_draft_tokens(options.draft_tokens), _align(options.align))
    prompt = joined_prompt(options.prompt, options.hotwords)
    inputs = _inputs(options)
    return BatchRequest(
        inputs=inputs.found,
        target=target,
        drafter=drafter,
        auto_budget=options.drafter is None and options.draft_tokens == AUTO and not options.compare,
        language=language,
        prompt=prompt,
        timed=options.json or any(name != "txt" for name in formats),
        word_timestamps=options.word_timestamps,
        layout=Layout(options.max_line_width, options.max_line_count, options.max_words_per_line),
        formats=formats,
        folder=options.output_dir,
        overwrite=options.overwrite,
        fail_fast=options.fail_fast,
        compare=options.compare and drafter is not None,
        vad=options.vad,
        threads=options.threads or usable_cpus(),
        decode=decode,
    ), inputs.notes


def _inputs(options: Options) -> Inputs:
    """Find what to transcribe; the last step, as it may read standard input."""
    if options.null and options.files_from is None:
        raise RequestError("--null does nothing without a list of files", "add --files-from")
    if options.files_from == STDIN and STDIN in options.files:
        raise RequestError(
            "- and --files-from - both mean standard input", "put the list, or the audio, into a file"
        )
    listed = [] if options.files_from is None else read_list(options.files_from, null=options.null)
    return find_inputs(options.files, listed)


def _formats(options: Options) -> tuple[str, ...]:
    """Return the formats of the files to write, each once; `-o` alone means plain text."""
    if options.output_format is None:
        return () if options.output_dir is None else ("txt",)
    names = [name.strip().lower() for name in options.output_format.split(",") if name.strip()]
    if ALL_FORMATS in names:
        return tuple(FORMATS)
    for name in names:
        if name not in FORMATS:
            raise RequestError(
                f"there is no output format {name!r}", suggestion(name, (*FORMATS, ALL_FORMATS))
            )
    if not names:
        raise RequestError("-f needs at least one format", f"formats: {', '.join(FORMATS)}, all")
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
    modes = get_args(AlignMode)
    if text is not None and text not in modes:
        raise RequestError(f"there is no alignment {text!r}", suggestion(text, modes))
    return cast(AlignMode, text or "hybrid")


def _refuse_idle_options(options: Options, formats: tuple[str, ...], drafter: ModelEntry | None) -> None:
    """Refuse an option that would do nothing: whoever gives it expects something else.

    What is set for all runs, by environment or file, may be of use in other ones.
    """
    without_drafter = drafter is None and {"compare", "draft_tokens", "align"} & _in_effect(options)
    for name in sorted(without_drafter or ()):
        raise RequestError(
            f"--{name.replace('_', '-')} does nothing without a drafter", "choose one with --drafter"
        )
    has_words = options.json or WORD_FORMATS.intersection(formats)
    if "word_timestamps" in _in_effect(options) and not has_words:
        raise RequestError("--word-timestamps does nothing without JSON", "add --json, or -f json")
    _refuse_idle_layout(options, formats)
    if "overwrite" in _in_effect(options) and not formats:
        raise RequestError("--overwrite does nothing without files to write", "add -f or -o")


def _refuse_idle_layout(options: Options, formats: tuple[str, ...]) -> None:
    limits = {"max_line_width", "max_line_count", "max_words_per_line"}
    for name in sorted(limits & _in_effect(options)):
        if not SUBTITLES.intersection(formats):
            raise RequestError(
                f"--{name.replace('_', '-')} does nothing without subtitles", "add -f srt or -f vtt"
            )
        if options.max_line_width is None and options.max_words_per_line is None:
            raise RequestError(
                "--max-line-count does nothing alone", "add --max-line-width or --max-words-per-line"
            )


def _in_effect(options: Options) -> frozenset[str]:
    """Return the options on the command line that ask for something: not those that say no, or auto."""
    return frozenset(
        name for name in options.given if getattr(options, name, None) not in {False, None, AUTO}
    )


def _refuse_contradictions(options: Options) -> None:
    in_effect = _in_effect(options)
    for one, other in (("quiet", "verbose"), ("quiet", "progress")):
        if {one, other} <= in_effect:
            raise RequestError(f"--{one} and --{other} contradict each other")
    for name in ("prompt", "hotwords"):
        if name in options.given and not (getattr(options, name) or "").strip():
            raise RequestError(f"--{name} is empty", "leave it out")
