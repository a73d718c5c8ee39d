"""Hook implementations of the LLM plugin. Heavy imports wait until a hook is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from as2d_cli.hookspecs import hookimpl

if TYPE_CHECKING:
    from as2d_cli.decoding.protocols import Drafter, Target, Tokenizer
    from as2d_cli.registry import ModelEntry

CONVERTER_VERSION = "1"
"""Raised when converted files change meaning, so that older ones are converted anew."""


@hookimpl
def as2d_convert(entry: ModelEntry, source: Path, destination: Path) -> bool:
    """Make the random weights of a shape, or convert the GGUF file of a model that reads."""
    from as2d_mnn_llm.gguf_model import convert
    from as2d_mnn_llm.shapes import is_shape, write_shape

    if is_shape(entry.options):
        write_shape(entry.name, entry.options, destination)
    else:
        convert(source, destination)
    return True


@hookimpl
def as2d_load_target(entry: ModelEntry, path: Path, threads: int) -> Target:
    """Load a model as a target."""
    from as2d_mnn_llm.reader import ReadingTarget, memory_of
    from as2d_mnn_llm.shape_model import ShapeTarget
    from as2d_mnn_llm.shapes import is_shape

    if is_shape(entry.options):
        return ShapeTarget(path, threads)
    return ReadingTarget(path, threads, memory_of(entry))


@hookimpl
def as2d_load_drafter(entry: ModelEntry, path: Path, threads: int) -> Drafter:
    """Load a model as a drafter."""
    from as2d_mnn_llm.reader import ReadingDrafter, memory_of
    from as2d_mnn_llm.shape_model import ShapeDrafter
    from as2d_mnn_llm.shapes import is_shape

    if is_shape(entry.options):
        return ShapeDrafter(path, threads)
    return ReadingDrafter(path, threads, memory_of(entry))


@hookimpl
def as2d_load_tokenizer(entry: ModelEntry, path: Path) -> Tokenizer:
    """Load only the tokenizer, or what a shape has in its place."""
    from as2d_mnn_llm.bpe import LlmTokenizer
    from as2d_mnn_llm.shape_model import ShapeTokenizer
    from as2d_mnn_llm.shapes import is_shape

    return ShapeTokenizer() if is_shape(entry.options) else LlmTokenizer.load(path)
