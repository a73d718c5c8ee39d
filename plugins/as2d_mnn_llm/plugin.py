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
def as2d_convert(entry: ModelEntry, source: Path, destination: Path) -> bool | None:
    """Make the random weights of a shape."""
    from as2d_mnn_llm.shapes import is_shape, write_shape

    if not is_shape(entry.options):
        return None
    write_shape(entry.name, entry.options, destination)
    return True


@hookimpl
def as2d_load_target(entry: ModelEntry, path: Path, threads: int) -> Target | None:
    """Load a shape as a target."""
    from as2d_mnn_llm.shape_model import ShapeTarget
    from as2d_mnn_llm.shapes import is_shape

    return ShapeTarget(path, threads) if is_shape(entry.options) else None


@hookimpl
def as2d_load_drafter(entry: ModelEntry, path: Path, threads: int) -> Drafter | None:
    """Load a shape as a drafter."""
    from as2d_mnn_llm.shape_model import ShapeDrafter
    from as2d_mnn_llm.shapes import is_shape

    return ShapeDrafter(path, threads) if is_shape(entry.options) else None


@hookimpl
def as2d_load_tokenizer(entry: ModelEntry) -> Tokenizer | None:
    """Give a shape something in place of a tokenizer."""
    from as2d_mnn_llm.shape_model import ShapeTokenizer
    from as2d_mnn_llm.shapes import is_shape

    return ShapeTokenizer() if is_shape(entry.options) else None
