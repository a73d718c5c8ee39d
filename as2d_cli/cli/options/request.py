"""Reads a command's options: numbers, sizes and lists become `RunOptions`, then a request with inputs."""

from __future__ import annotations

import math
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

from as2d_cli.batch.inputs import STDIN, Inputs, find_inputs
from as2d_cli.batch.options import RunOptions, build_request, formats_of
from as2d_cli.batch.request import BatchRequest
from as2d_cli.cli.options.parameters import BatchOptions, BudgetOptions, InputOptions, TranslateOptions
from as2d_cli.cli.options.settings import declared_model_options
from as2d_cli.domain.errors import RequestError, reason
from as2d_cli.domain.languages import AUTO
from as2d_cli.system.printable import printable
from as2d_cli.system.special_files import read_any, read_small
from as2d_cli.transcripts.subtitles import Layout

MAX_DRAFT_TOKENS = 64
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_DIGITS = re.compile("[0-9]{1,9}")
_SIZE = re.compile(r"(?P<number>[0-9]{1,18}(\.[0-9]+)?) ?(?P<unit>|[kmg]i?)b?", re.IGNORECASE | re.ASCII)


def read_request(options: BatchOptions) -> tuple[BatchRequest, tuple[str, ...]]:
    """Make sense of the options; return what is asked for, and notes on plugins and the search for inputs.

    Raises as `build_request`.
    """
    request = build_request(read_options(options))
    _refuse_contradictions(options)
    inputs = _find_given(options)
    warnings = declared_model_options().warnings
    return replace(request, inputs=inputs.found), (*warnings, *inputs.notes)


def read_options(options: BatchOptions) -> RunOptions:
    """Return the options of a run, numbers and sizes read. Raises `RequestError`."""
    return RunOptions(
        given=_in_effect(options),
        model=options.model,
        drafter=options.drafter,
        model_options=options.model_options,
        language=options.language,
        to=options.to if isinstance(options, TranslateOptions) else None,
        prompt=options.prompt,
        hotwords=options.hotwords,
        audio_track=options.audio_track,
        channel=options.channel,
        vad=options.vad,
        rescue=options.rescue,
        draft_limit=draft_limit(options),
        draft_tokens=draft_tokens(options),
        latency_quantile=_share(options.latency_quantile),
        memory_limit_bytes=None if options.memory_limit is None else _bytes(options.memory_limit),
        compare=options.compare,
        threads=options.threads,
        jobs=_jobs(options.jobs),
        formats=_formats(options),
        output_dir=options.output_dir,
        overwrite=options.overwrite,
        word_timestamps=options.word_timestamps,
        show_confidence=options.show_confidence,
        layout=Layout(
            options.max_line_width,
            options.max_line_count,
            options.max_words_per_line,
            style=options.subtitle_style.strip().lower(),
            highlight_words=options.highlight_words,
        ),
        structured=options.json,
        fail_fast=options.fail_fast,
        engine=options.engine,
        address=options.address,
    )


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


def draft_limit(options: BudgetOptions) -> int | None:
    """Return the most candidates per step, None to leave it to measurements. Raises `RequestError`."""
    return _count("budget", options.budget, least=0)


def draft_tokens(options: BudgetOptions) -> int | None:
    """Return the candidates of every step, None to leave them to the controller. Raises `RequestError`."""
    return _count("draft-tokens", options.draft_tokens, least=1)


def _share(text: str) -> float:
    """Return the share that `--latency-quantile` asks for. Raises `RequestError` for what is none."""
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise RequestError(f"--latency-quantile cannot be {text!r}", "give a share between 0 and 1, as 0.9")
    return share


def _jobs(text: str) -> int | None:
    """Return how many engines are asked for; None: as many as pay. Raises `RequestError`."""
    if text.lower() == AUTO:
        return None
    if not _DIGITS.fullmatch(text) or not int(text):
        raise RequestError(f"--jobs cannot be {text!r}", "give a number from 1, or auto")
    return int(text)


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


def _in_effect(options: BatchOptions) -> frozenset[str]:
    """Return the options on the command line that ask for something: not those that say no, or auto."""
    return frozenset(
        name for name in options.given if getattr(options, name, None) not in (False, None, AUTO)
    )


def _refuse_contradictions(options: BatchOptions) -> None:
    in_effect = _in_effect(options)
    for one, other in (("quiet", "verbose"), ("quiet", "progress"), ("budget", "draft-tokens")):
        if {one, other.replace("-", "_")} <= in_effect:
            raise RequestError(f"--{one} and --{other} contradict each other")
    for name in ("prompt", "hotwords", "model", "output_dir"):  # is a variable unset?
        if name in options.given and not (getattr(options, name) or "").strip():
            raise RequestError(f"--{name.replace('_', '-')} is empty", "leave it out")
