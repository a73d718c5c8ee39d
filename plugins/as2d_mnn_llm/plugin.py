"""Hook implementations of the LLM plugin. Heavy imports wait until a hook is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from as2d_cli.plugin import hookimpl

if TYPE_CHECKING:
    from as2d_cli.plugin import Drafter, ModelEntry, Target, Tokenizer

CONVERTER_VERSION = "1"
"""Raised when converted files change meaning, so that older ones are converted anew."""

RUNTIMES = frozenset({"MNN"})
"""Packages that run the models; with another version these are converted anew."""


@hookimpl
def as2d_convert(entry: ModelEntry, source: Path, destination: Path) -> bool:
    """Convert a GGUF file or a checkpoint, take over an export, or make the random weights of a shape."""
    from as2d_mnn_llm import kinds

    kinds.convert(entry, source, destination)
    return True


@hookimpl
def as2d_check(entry: ModelEntry, settings: Path) -> None:
    """Refuse an export or a checkpoint in a form that cannot be used."""
    from as2d_mnn_llm.checkpoints.check import CHECKPOINT, check

    if CHECKPOINT in entry.source.file_names:
        check(settings, entry.source.file_names)


@hookimpl
def as2d_load_target(entry: ModelEntry, path: Path, threads: int) -> Target:
    """Load a model as a target."""
    from as2d_mnn_llm import kinds

    return kinds.load_target(entry, path, threads)


@hookimpl
def as2d_load_drafter(entry: ModelEntry, path: Path, threads: int) -> Drafter:
    """Load a model as a drafter."""
    from as2d_mnn_llm import kinds

    return kinds.load_drafter(entry, path, threads)


@hookimpl
def as2d_load_tokenizer(entry: ModelEntry, path: Path) -> Tokenizer:
    """Load only the tokenizer, or what a shape has in its place."""
    from as2d_mnn_llm import kinds

    return kinds.load_tokenizer(entry, path)


@hookimpl
def as2d_export(source: Path, destination: Path, bits: int, hqq: bool) -> bool:
    """Export a checkpoint of an audio language model for MNN's LLM engine."""
    from as2d_mnn_llm.checkpoints.convert import export

    export(source, destination, bits, hqq=hqq)
    return True
