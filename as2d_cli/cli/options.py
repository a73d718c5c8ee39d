"""What the options of `as2d transcribe` mean: checked, completed from the registry, one request."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from as2d_cli.batch import BatchRequest, usable_cpus
from as2d_cli.decoding import AlignMode
from as2d_cli.errors import RequestError
from as2d_cli.languages import AUTO, language_code
from as2d_cli.registry import ModelEntry, Registry, load_registry
from as2d_cli.tables import suggestion
from as2d_cli.workers import DecodeSettings
from as2d_cli.writers import FORMATS

NO_DRAFTER = "none"
ALL_FORMATS = "all"
WORD_FORMATS = frozenset({"json", "jsonl"})
MAX_DRAFT_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Options:
    """The options as typed; what they mean is for `batch_request` to say."""

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


def batch_request(options: Options) -> BatchRequest:
    """Make sense of the options. Raises `RequestError`, or `RegistryError` for an unknown model."""
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
        timed=options.as_json or any(name != "txt" for name in formats),
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
