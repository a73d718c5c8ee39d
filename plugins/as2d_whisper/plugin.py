"""Hook implementations of the Whisper plugin. Heavy imports wait until a hook is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from as2d_cli.plugin import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from as2d_cli.plugin import Drafter, ModelEntry, OptionValue, Target, Tokenizer

CONVERTER_VERSION = "7"
"""Raised when converted files change meaning, so that older ones are converted anew."""

RUNTIMES = frozenset({"MNN", "openvino"})
"""Packages that run the models; with another version these are converted anew."""

LOADING_OPTIONS = frozenset({"context", "speed"})
"""Options that converted files do not depend on."""

CONVERTING_OPTIONS = frozenset({"backend"})
"""Options of a run that they do depend on."""


@hookimpl
def as2d_settle_options(entry: ModelEntry) -> Mapping[str, OptionValue]:
    """Decide on backend and precision. Raises `ModelError` for what this machine has not."""
    from as2d_whisper.backends.choice import settle

    return settle(entry.options)


@hookimpl
def as2d_convert(entry: ModelEntry, source: Path, destination: Path) -> bool:
    """Convert a CTranslate2 or safetensors checkpoint, or make the random weights of a shape."""
    from as2d_whisper.convert import convert, convert_shape

    if entry.options.get("kind") == "shape":
        convert_shape(destination, entry.options)
    else:
        convert(source, destination, entry.options)
    return True


@hookimpl
def as2d_load_target(entry: ModelEntry, path: Path, threads: int, decode_threads: int) -> Target:
    """Load a converted Whisper as a target. Raises `ModelError`, also for an option that cannot be."""
    from as2d_whisper.context import read_context
    from as2d_whisper.target import WhisperTarget

    return WhisperTarget(path, threads, decode_threads, context=read_context(entry, "full"))


@hookimpl
def as2d_load_drafter(entry: ModelEntry, path: Path, threads: int) -> Drafter:
    """Load a converted Whisper as a drafter. Raises `ModelError`, also for an option that cannot be."""
    from as2d_cli.plugin import ModelError
    from as2d_whisper.context import read_context
    from as2d_whisper.drafter import WhisperDrafter

    speed = entry.options.get("speed", 1.0)
    if not isinstance(speed, int | float):
        raise ModelError(f"model {entry.name!r}: option speed must be a number")
    return WhisperDrafter(path, threads, speed, context=read_context(entry, "fitted"))


@hookimpl
def as2d_load_tokenizer(path: Path) -> Tokenizer:
    """Load only the tokenizer."""
    from as2d_whisper.tokenizer import WhisperTokenizer

    return WhisperTokenizer(path / "tokenizer.json")
