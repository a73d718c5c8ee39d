"""Writes a Whisper checkpoint as whisper.cpp reads it, so that both run the same weights.

File format (ggml-org/whisper.cpp, `models/convert-pt-to-ggml.py` and the loader in `src/whisper.cpp`):
magic and sizes, mel filters, tokens as bytes, then the arrays by OpenAI's names. Block formats:
`ggml/src/ggml-quants.c`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from as2d_cli.audio.log_mel import mel_filters
from as2d_whisper.checkpoint import Checkpoint, read_checkpoint
from as2d_whisper.tokenizer import WhisperTokenizer

Floats = NDArray[np.float32]
_MAGIC = 0x67676D6C
_F32, _F16 = 0, 1
_BLOCK = 32
_QUANTISATION_VERSION = 2000  # of ggml's block formats, in thousands, added to the kind of the file


class _Kind(NamedTuple):
    """How matrices are stored."""

    file: int
    array: int
    pack: Callable[[Floats], bytes]


def _halves(array: Floats) -> bytes:
    return array.astype(np.float16).tobytes()


def _q8_0(array: Floats) -> bytes:
    """Blocks of 32: a half for the scale, then signed bytes."""
    blocks = array.reshape(-1, _BLOCK)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127
    packed = np.zeros(len(blocks), np.dtype([("scale", "<f2"), ("values", "i1", _BLOCK)]))
    packed["scale"] = scale[:, 0]
    packed["values"] = np.rint(blocks / np.where(scale, scale, 1))
    return packed.tobytes()


def _q5_0(array: Floats) -> bytes:
    """Blocks of 32: a half for the scale, 32 fifth bits, then two values' low halves in each byte."""
    blocks = array.reshape(-1, _BLOCK)
    rows = np.arange(len(blocks))
    scale = blocks[rows, np.abs(blocks).argmax(axis=1)][:, None] / -16
    values = np.minimum(31, (blocks / np.where(scale, scale, 1) + 16.5).astype(np.uint8))
    packed = np.zeros(len(blocks), np.dtype([("scale", "<f2"), ("high", "u1", 4), ("low", "u1", 16)]))
    packed["scale"] = scale[:, 0]
    packed["high"] = np.packbits(values >> 4, axis=1, bitorder="little")
    packed["low"] = (values[:, :16] & 15) | ((values[:, 16:] & 15) << 4)
    return packed.tobytes()


KINDS = {
    "f16": _Kind(1, _F16, _halves),
    "q8_0": _Kind(_QUANTISATION_VERSION + 7, 8, _q8_0),
    "q5_0": _Kind(_QUANTISATION_VERSION + 8, 6, _q5_0),
}


def convert(source: Path, destination: Path, kind: str) -> None:
    """Write the checkpoint in the folder `source` as one file. Raises `ModelError` if it cannot be read."""
    checkpoint, how = read_checkpoint(source), KINDS[kind]
    tokens = _tokens(source / "tokenizer.json")
    filters = mel_filters(checkpoint.n_mels)
    part = destination.with_suffix(".part")
    with part.open("wb") as file:
        file.write(_integers(_MAGIC, *_sizes(checkpoint), how.file))
        file.write(_integers(*filters.shape) + filters.astype("<f4").tobytes())
        file.write(_integers(len(tokens)))
        for token in tokens:
            file.write(_integers(len(token)) + token)
        for name, array in _arrays(checkpoint):
            file.write(_record(name, array, how))
    part.replace(destination)


def _integers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def _sizes(checkpoint: Checkpoint) -> tuple[int, ...]:
    width, heads = checkpoint.d_model, checkpoint.n_heads
    encoder = (checkpoint.n_audio_positions, width, heads, checkpoint.n_layers("encoder"))
    decoder = (checkpoint.n_text_positions, width, heads, checkpoint.n_layers("decoder"))
    return (checkpoint.vocab_size, *encoder, *decoder, checkpoint.n_mels)


def _tokens(path: Path) -> list[bytes]:
    """Return the ordinary tokens in order; whisper.cpp names the special ones itself."""
    tokenizer = WhisperTokenizer(path)
    first_special = min(int(item["id"]) for item in json.loads(path.read_text("utf-8"))["added_tokens"])
    return [tokenizer.decode_bytes([token]) for token in range(first_special)]


def _record(name: str, array: Floats, how: _Kind) -> bytes:
    """Return one array with its header; only matrices of weights are ever quantised."""
    kind, data = _F32, array.tobytes()
    if array.ndim == 3:  # convolutions
        kind, data = _F16, _halves(array)
    elif array.ndim == 2 and "positional" not in name and "conv" not in name:
        kind, data = how.array, how.pack(array)
    label = name.encode()
    return _integers(array.ndim, len(label), kind, *array.shape[::-1]) + label + data


def _arrays(checkpoint: Checkpoint) -> Iterator[tuple[str, Floats]]:
    yield "decoder.token_embedding.weight", checkpoint["decoder/embeddings/weight"]
    for name in ("conv1", "conv2"):
        yield f"encoder.{name}.weight", checkpoint[f"encoder/{name}/weight"]
        yield f"encoder.{name}.bias", checkpoint[f"encoder/{name}/bias"][:, None]
    for part, norm in (("encoder", "ln_post"), ("decoder", "ln")):
        yield f"{part}.positional_embedding", checkpoint[f"{part}/position_encodings/encodings"]
        yield from _norm(checkpoint, f"{part}/layer_norm", f"{part}.{norm}")
        for index in range(checkpoint.n_layers(part)):
            yield from _layer(checkpoint, f"{part}/layer_{index}", f"{part}.blocks.{index}")


def _layer(checkpoint: Checkpoint, theirs: str, ours: str) -> Iterator[tuple[str, Floats]]:
    joined: dict[str, tuple[str, ...]] = {
        "self_attention/linear_0": ("attn.query", "attn.key", "attn.value"),
        "self_attention/linear_1": ("attn.out",),
        "ffn/linear_0": ("mlp.0",),
        "ffn/linear_1": ("mlp.2",),
    }
    norms = {"self_attention": "attn_ln", "ffn": "mlp_ln"}
    if theirs.startswith("decoder"):
        norms["attention"] = "cross_attn_ln"
        joined["attention/linear_0"] = ("cross_attn.query",)
        joined["attention/linear_1"] = ("cross_attn.key", "cross_attn.value")
        joined["attention/linear_2"] = ("cross_attn.out",)
    for name, parts in joined.items():
        weights = np.split(checkpoint[f"{theirs}/{name}/weight"], len(parts))
        biases = np.split(checkpoint[f"{theirs}/{name}/bias"], len(parts))
        for part, weight, bias in zip(parts, weights, biases, strict=True):
            yield f"{ours}.{part}.weight", weight
            if not part.endswith("key"):  # Whisper's keys have none
                yield f"{ours}.{part}.bias", bias
    for name, norm in norms.items():
        yield from _norm(checkpoint, f"{theirs}/{name}/layer_norm", f"{ours}.{norm}")


def _norm(checkpoint: Checkpoint, theirs: str, ours: str) -> Iterator[tuple[str, Any]]:
    yield f"{ours}.weight", checkpoint[f"{theirs}/gamma"]
    yield f"{ours}.bias", checkpoint[f"{theirs}/beta"]
