"""The kinds of models here: ones that hear, ones that read, and shapes, which decide nonsense."""

from __future__ import annotations

from pathlib import Path

from as2d_cli.plugin import Drafter, ModelEntry, Target, Tokenizer
from as2d_mnn_llm.audio.drafter import AudioDrafter
from as2d_mnn_llm.audio.model import hears
from as2d_mnn_llm.audio.target import AudioTarget
from as2d_mnn_llm.bpe import LlmTokenizer
from as2d_mnn_llm.checkpoints import convert as checkpoints
from as2d_mnn_llm.checkpoints.check import CHECKPOINT
from as2d_mnn_llm.gguf import model as gguf_model
from as2d_mnn_llm.hub_tokenizer import load_hub_tokenizer
from as2d_mnn_llm.reader import ReadingDrafter, ReadingTarget, memory_of
from as2d_mnn_llm.shape.files import is_shape, write_shape
from as2d_mnn_llm.shape.model import ShapeDrafter, ShapeTarget, ShapeTokenizer


def convert(entry: ModelEntry, source: Path, destination: Path) -> None:
    """Write to `destination` what the loaders below load. Raises `ModelError`."""
    if is_shape(entry.options):
        write_shape(entry.name, entry.options, destination)
    elif (source / CHECKPOINT).is_file():
        checkpoints.convert(entry.options, source, destination)
    else:
        gguf_model.convert(source, destination)


def load_target(entry: ModelEntry, path: Path, threads: int) -> Target:
    """Load the converted model in `path` as a target. Raises `ModelError`."""
    if is_shape(entry.options):
        return ShapeTarget(path, threads)
    load = AudioTarget if hears(path) else ReadingTarget
    return load(path, threads, memory_of(entry))


def load_drafter(entry: ModelEntry, path: Path, threads: int) -> Drafter:
    """Load the converted model in `path` as a drafter. Raises `ModelError`."""
    if is_shape(entry.options):
        return ShapeDrafter(path, threads)
    load = AudioDrafter if hears(path) else ReadingDrafter
    return load(path, threads, memory_of(entry))


def load_tokenizer(entry: ModelEntry, path: Path) -> Tokenizer:
    """Load only the tokenizer of the converted model in `path`. Raises `ModelError`."""
    if is_shape(entry.options):
        return ShapeTokenizer()
    return load_hub_tokenizer(path) if hears(path) else LlmTokenizer.load(path)
