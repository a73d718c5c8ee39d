"""Models that are all shape: random weights in the dimensions of a real audio language model.

They cost what the real model costs, in time, memory and disk, so a device can be judged before gigabytes
are downloaded. A model entry is one if its options say `kind = "shape"`; the other options are its
dimensions. Audio is heard a window of attention at a time, which the declared features say.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError, read_model_json
from as2d_mnn_llm.export.decoder import decoder_weights, to_mnn, write_decoder
from as2d_mnn_llm.export.graph import DecoderShape
from as2d_mnn_llm.export.records import Matrix, WeightFile
from as2d_mnn_llm.shape.encoder import EncoderShape, EncoderWeights, build_encoder
from as2d_mnn_llm.shape.random_weights import RandomWeights

KIND = "shape"
FILE = "shape.json"
T = TypeVar("T", DecoderShape, EncoderShape)
_ENCODER = "audio_"
_ENCODER_BITS = 8
_DECODER_BITS = (4, 8)
_SCALE_BYTES = 8
_WINDOW_FRAMES = 3000
_MOST, _MOST_MELS = 4096, 512


@dataclass(frozen=True, slots=True)
class ModelShape:
    """An audio encoder and a language model."""

    decoder: DecoderShape
    encoder: EncoderShape
    text_tokens: int
    """Tokens of the prompt that are not audio: template and instruction."""
    windows: int
    """Windows of attention that are encoded and prefilled when a session opens."""
    block: int
    """Columns that share a scale."""
    bits: int
    """Precision of the decoder's weights."""

    @property
    def frames(self) -> int:
        """Frames of 10 ms that a session hears: a part of 30 s."""
        return self.windows * self.encoder.window_frames

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt of a whole 30 s window."""
        return self.text_tokens + self.encoder.window_tokens * _WINDOW_FRAMES // self.encoder.window_frames

    @property
    def opened_tokens(self) -> int:
        """Tokens of the prompt that are prefilled when a session opens: its share of the whole prompt."""
        return round(self.prompt_tokens * self.frames / _WINDOW_FRAMES)

    @property
    def disk_bytes(self) -> int:
        """Size of the converted model, but for a few kilobytes."""
        decoder, encoder = self.decoder, self.encoder
        matrices, _ = decoder_weights(decoder)
        total = sum(
            out * inner * self.bits // 8 + out * inner // self.block * _SCALE_BYTES
            for out, inner in matrices.values()
        )
        layer = 4 * encoder.width**2 + 2 * encoder.width * encoder.ffn
        return total + encoder.layers * layer * _ENCODER_BITS // 8


def is_shape(options: Mapping[str, object]) -> bool:
    """Whether a model entry with these options is a shape."""
    return options.get("kind") == KIND


def read_shape(options: Mapping[str, object]) -> ModelShape:
    """Return the shape that the options of a model entry describe. Raises `ModelError`."""
    given = {name: value for name, value in options.items() if name != "kind"}
    decoder = _take(DecoderShape, given, sliding=None)
    encoder = _take(EncoderShape, given, _ENCODER, output=decoder.hidden)
    whole = {name: given.pop(name, None) for name in ("text_tokens", "windows", "block", "bits")}
    if given:
        raise ModelError(f"a shape has no option {min(given)!r}")
    for name, value in whole.items():
        if type(value) is not int or not 0 < value <= _MOST:
            raise ModelError(f"a shape's option {name!r} is {value!r}; expected one from 1 to {_MOST}")
    shape = ModelShape(decoder, encoder, **whole)  # type: ignore[arg-type]  # checked
    if shape.bits not in _DECODER_BITS:
        raise ModelError(f"a shape's option 'bits' is {shape.bits}; expected one of {_DECODER_BITS}")
    if shape.frames > _WINDOW_FRAMES or encoder.n_mels > _MOST_MELS:
        raise ModelError(
            f"a shape cannot hear {encoder.n_mels} bands of {shape.frames} frames", "30 s at most"
        )
    return shape


def _take(kind: type[T], given: dict[str, object], prefix: str = "", **known: object) -> T:
    """Take the fields of a dataclass out of `given`."""
    found = dict(known)
    for item in fields(kind):
        if item.name in known:
            continue
        name = f"{prefix}{item.name}"
        value = given.pop(name, None)
        wanted: tuple[type, ...] = {"int": (int,), "float": (float, int), "bool": (bool,)}.get(
            str(item.type), (str,)
        )
        if type(value) not in wanted:
            raise ModelError(f"a shape's option {name!r} is {value!r}; expected {wanted[0].__name__}")
        found[item.name] = value
    return kind(**found)  # type: ignore[arg-type]  # checked


def write_shape(name: str, options: Mapping[str, object], folder: Path) -> None:
    """Write the converted form of the model `name`. Raises `ModelError`, also if the disk is too full."""
    shape = read_shape(options)
    free = shutil.disk_usage(folder).free
    if free < shape.disk_bytes * 1.05:
        raise ModelError(
            f"{name} needs {shape.disk_bytes / 1e9:.1f} GB on disk; {folder} has {free / 1e9:.1f} GB left",
            "free space there, or set AS2D_CACHE_DIR to another folder",
        )
    random = RandomWeights(shape.block)
    write_decoder(shape.decoder, lambda wanted: _decoder_weight(shape, random, wanted), folder)
    weights = EncoderWeights(
        lambda out, inner: random.matrix(out, inner, _ENCODER_BITS, bias=True), random.small
    )
    with (folder / "audio.mnn.weight").open("wb") as file:
        graph = build_encoder(shape.encoder, weights, WeightFile(file), shape.windows)
    graph_path = folder / "audio.json"
    graph_path.write_text(json.dumps(graph.document(["audio"])), encoding="utf-8")
    to_mnn("JSON", graph_path, folder / "audio.mnn")
    graph_path.unlink()
    (folder / FILE).write_text(json.dumps(dict(options)), encoding="utf-8")


def stored_shape(folder: Path) -> ModelShape:
    """Return the shape of the converted model in `folder`. Raises `ModelError`."""
    return read_shape(read_model_json(folder / FILE, "as2d models verify, then as2d models pull"))


def _decoder_weight(shape: ModelShape, random: RandomWeights, name: str) -> Matrix | NDArray[np.float32]:
    matrices, norms = decoder_weights(shape.decoder)
    if name in norms:
        return random.vector(norms[name])
    out, inner = matrices[name]
    biased = shape.decoder.architecture == "qwen2" and name.endswith((".q", ".k", ".v"))
    return random.matrix(out, inner, shape.bits, bias=biased)
