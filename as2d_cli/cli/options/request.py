"""What the options of a run over many files mean: checked, completed from the registry, one request."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

from as2d_cli.batch.inputs import STDIN, Inputs, find_inputs
from as2d_cli.batch.outputs import output_folder
from as2d_cli.batch.request import (
    WORD_FORMATS,
    BatchRequest,
    cluster_choice,
    formats_of,
    joined_prompt,
    with_context,
)
from as2d_cli.cli.options.parameters import BatchOptions, BudgetOptions, InputOptions, TranslateOptions
from as2d_cli.decoding.controller import MAX_CANDIDATES
from as2d_cli.domain.errors import RequestError, reason
from as2d_cli.domain.languages import AUTO, language_code
from as2d_cli.engine.messages import DecodeSettings
from as2d_cli.models.registry import load_registry
from as2d_cli.system.device import usable_threads
from as2d_cli.system.printable import printable
from as2d_cli.system.special_files import read_any, read_small
from as2d_cli.transcripts.formats import SUBTITLES
from as2d_cli.transcripts.subtitles import Layout

MAX_DRAFT_TOKENS = 64
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_DIGITS = re.compile("[0-9]{1,9}")
_SIZE = re.compile(r"(?P<number>[0-9]{1,18}(\.[0-9]+)?) ?(?P<unit>|[kmg]i?)b?", re.IGNORECASE | re.ASCII)


def batch_request(options: BatchOptions) -> tuple[BatchRequest, tuple[str, ...]]:
    """Make sense of the options; return what is asked for, and what to tell of the search for inputs.

    Raises `RequestError`, or `RegistryError` for an unknown model.
    """
    formats = _formats(options)
    registry = load_registry()
    to = _language_to_write(options)
    target, drafter = registry.choose(options.model, options.drafter, "translate" if to else "transcribe")
    target = with_context(target, options.context)
    decode, budget = decode_settings(options)
    request = BatchRequest(
        inputs=(),
        target=target,
        drafter=None if budget == 0 else drafter,
        auto_budget=options.drafter is None
        and budget is None
        and decode.draft_tokens is None
        and not options.compare,
        others=registry.others_of(target, drafter),
        memory_limit_bytes=None if options.memory_limit is None else _bytes(options.memory_limit),
        language=language_code(options.language),
        translate_to=to,
        prompt=joined_prompt(options.prompt, options.hotwords),
        timed=options.json or any(name != "txt" for name in formats),
        word_timestamps=options.word_timestamps,
        layout=Layout(options.max_line_width, options.max_line_count, options.max_words_per_line),
        formats=formats,
        folder=None if options.output_dir is None else output_folder(options.output_dir),
        overwrite=options.overwrite,
        fail_fast=options.fail_fast,
        compare=options.compare,
        vad=options.vad,
        threads=usable_threads(options.threads),
        cluster=cluster_choice(options.engine, options.address, options.threads),
        decode=decode,
    )
    _refuse_idle_options(options, request)
    _refuse_contradictions(options)
    inputs = _find_given(options)
    return replace(request, inputs=inputs.found), inputs.notes


def _language_to_write(options: BatchOptions) -> str | None:
    """Return the language to translate to, None to write what is spoken."""
    if not isinstance(options, TranslateOptions):
        return None
    to = language_code(options.to)
    if to is None:
        raise RequestError(f"--to cannot be {options.to!r}", "give a code like en, or an English name")
    return to


def _find_given(options: InputOptions) -> Inputs:
    """Find the inputs; the last step, as it may read standard input. Raises `RequestError`."""
    files = options.files or []
    if options.null and options.files_from is None:
        raise RequestError("--null does nothing without a list of files", "add --files-from")
    if options.files_from == STDIN and STDIN in files:
        raise RequestError(
            "- and --files-from - both mean standard input", "put the list, or the audio, into a file"
        )
    listed = [] if options.files_from is None else read_list(options.files_from, null=options.null)
    return find_inputs(files, listed)


def read_list(source: str, *, null: bool = False, option: str = "files-from") -> list[str]:
    """Return the paths, or what else `option` takes, in the file `source` (`-`: standard input).

    There is one a line, or each is ended by NUL if `null`. Empty lines are passed over. Raises `RequestError`
    if the list cannot be read.
    """
    if not source:
        raise RequestError(f"--{option} is empty", "is a variable unset?")
    try:
        content = read_small(sys.stdin.buffer) if source == STDIN else read_any(Path(source))
    except (OSError, ValueError) as error:
        raise RequestError(
            f"{printable(source)}: the list cannot be read: {reason(error)}",
            f"--{option} needs a text file with one entry a line, or - for standard input",
        ) from error
    content = content.removeprefix(b"\xef\xbb\xbf")  # Windows editors put it first
    names = content.split(b"\0") if null else [line.rstrip(b"\r") for line in content.split(b"\n")]
    return [os.fsdecode(name) for name in names if (name if null else name.strip())]


def _formats(options: BatchOptions) -> tuple[str, ...]:
    """Return the formats of the files to write; `-o` alone means plain text."""
    if options.output_format is None:
        return () if options.output_dir is None else ("txt",)
    return formats_of(options.output_format.split(","))


def decode_settings(options: BudgetOptions) -> tuple[DecodeSettings, int | None]:
    """Return how drafts are to be used, and the most candidates that are asked for. Raises `RequestError`."""
    budget = _count("budget", options.budget, least=0)
    draft_tokens = _count("draft-tokens", options.draft_tokens, least=1)
    return DecodeSettings(draft_tokens, cap=MAX_CANDIDATES if budget is None else budget), budget


def _count(option: str, text: str, least: int) -> int | None:
    """Return the number of draft tokens that an option asks for; None: as measurements have it."""
    if text.lower() == AUTO:
        return None
    if not _DIGITS.fullmatch(text) or not least <= int(text) <= MAX_DRAFT_TOKENS:
        raise RequestError(
            f"--{option} cannot be {text!r}",
            f"give a number from {least} to {MAX_DRAFT_TOKENS}, or auto; --drafter none means no drafts",
        )
    return int(text)


def _bytes(text: str) -> int:
    """Return how many bytes a size such as `600MB`, `1.5 GiB` or `800000000` means."""
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found["number"]) * _UNITS[found["unit"].lower()]) if found else 0
    if not size:
        raise RequestError(f"--memory-limit cannot be {text!r}", "give a size such as 600MB, 1.5GB or 2GiB")
    return size


def _refuse_idle_options(options: BatchOptions, request: BatchRequest) -> None:
    """Refuse an option that would do nothing: whoever gives it expects something else.

    What is set for all runs, by environment or file, may be of use in other ones.
    """
    in_effect = _in_effect(options)
    chosen = request.drafter if "drafter" in in_effect else None
    if chosen is not None and chosen not in request.able_drafters:
        raise RequestError(f"model {chosen.name!r} cannot {request.task}", "choose another drafter")
    for_drafts = {"compare", "draft_tokens"} | ({"budget"} if options.budget != "0" else set())
    for name in sorted(for_drafts & in_effect if not request.able_drafters else ()):
        unable = f", and {request.drafter.name!r} cannot {request.task}" if request.drafter else ""
        raise RequestError(
            f"--{name.replace('_', '-')} does nothing without a drafter{unable}", "choose one with --drafter"
        )
    if "memory_limit" in in_effect and not request.auto_budget:
        raise RequestError(
            "--memory-limit does nothing where drafts are not chosen by this device's profile",
            "leave out --drafter, --budget, --draft-tokens and --compare",
        )
    has_words = options.json or WORD_FORMATS.intersection(request.formats)
    if "word_timestamps" in in_effect and not has_words:
        raise RequestError("--word-timestamps does nothing without JSON", "add --json, or -f json")
    _refuse_idle_layout(options, request.formats)
    if "overwrite" in in_effect and not request.formats:
        raise RequestError("--overwrite does nothing without files to write", "add -f or -o")


def _refuse_idle_layout(options: BatchOptions, formats: tuple[str, ...]) -> None:
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


def _in_effect(options: BatchOptions) -> frozenset[str]:
    """Return the options on the command line that ask for something: not those that say no, or auto."""
    return frozenset(
        name for name in options.given if getattr(options, name, None) not in (False, None, AUTO)
    )


def _refuse_contradictions(options: BatchOptions) -> None:
    in_effect = _in_effect(options)
    if "address" in in_effect and options.engine == "local":
        raise RequestError("--address does nothing without a cluster", "add --engine ray")
    for one, other in (("quiet", "verbose"), ("quiet", "progress"), ("budget", "draft-tokens")):
        if {one, other.replace("-", "_")} <= in_effect:
            raise RequestError(f"--{one} and --{other} contradict each other")
    for name in ("prompt", "hotwords", "model", "output_dir"):  # is a variable unset?
        if name in options.given and not (getattr(options, name) or "").strip():
            raise RequestError(f"--{name.replace('_', '-')} is empty", "leave it out")
