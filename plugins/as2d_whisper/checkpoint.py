"""Reads Whisper weights: CTranslate2 `model.bin` and Hugging Face safetensors give one `Checkpoint`.

Both formats are flat lists of named arrays, so neither needs torch, and nothing in them is executed.
Array names follow CTranslate2's WhisperSpec (public format, OpenNMT/CTranslate2 `specs/whisper_spec.py`).
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.errors import ModelError

Array = NDArray[np.generic]

_CT2_DTYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
_CT2_VERSIONS = range(5, 7)
_SAFETENSORS_DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
_MAX_DIMS = 8
_MAX_LAYERS = 128
_MAX_HEADER_BYTES = 100_000_000  # the limit that the safetensors format itself sets


@dataclass(frozen=True)
class Checkpoint:
    """Whisper weights by CTranslate2 name; linear weights have shape (out, in)."""

    tensors: Mapping[str, Array]
    n_heads: int

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Return one array as float32; raises `ModelError` if the checkpoint lacks it."""
        if name not in self.tensors:
            raise ModelError(
                f"the checkpoint has no array {name!r}", "is it a Whisper model of a supported layout?"
            )
        return np.asarray(self.tensors[name], dtype=np.float32)

    def _size(self, name: str, axis: int) -> int:
        shape = self[name].shape
        if axis >= len(shape):
            raise ModelError(f"the checkpoint's {name!r} has shape {shape}")
        return int(shape[axis])

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self._size("decoder/embeddings/weight", 1)

    @property
    def vocab_size(self) -> int:
        """Rows of the token embedding."""
        return self._size("decoder/embeddings/weight", 0)

    @property
    def n_mels(self) -> int:
        """Mel bands of the front end: 80, or 128 from large-v3 on."""
        return self._size("encoder/conv1/weight", 1)

    @property
    def n_audio_positions(self) -> int:
        """Encoder output frames of a full window."""
        return self._size("encoder/position_encodings/encodings", 0)

    @property
    def n_text_positions(self) -> int:
        """Longest token sequence, prompt included."""
        return self._size("decoder/position_encodings/encodings", 0)

    def n_layers(self, part: str) -> int:
        """Layers of `part` ("encoder" or "decoder")."""
        gammas = [f"{part}/layer_{i}/ffn/layer_norm/gamma" for i in range(_MAX_LAYERS)]
        return sum(name in self.tensors for name in gammas)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read `model.bin` or `model.safetensors` in `folder`. Raises `ModelError`."""
    config = read_json(folder / "config.json")
    if (folder / "model.bin").is_file():
        return _read_ctranslate2(folder / "model.bin")
    if (folder / "model.safetensors").is_file():
        heads = config.get("decoder_attention_heads")
        if not isinstance(heads, int) or heads < 1:
            raise ModelError(f"{folder / 'config.json'}: decoder_attention_heads is missing")
        return Checkpoint(dict(_from_huggingface(read_safetensors(folder / "model.safetensors"))), heads)
    raise ModelError(f"{folder}: no model.bin and no model.safetensors")


def read_json(path: Path) -> dict[str, object]:
    """Read a JSON object. Raises `ModelError`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path}: expected a JSON object")
    return value


def _map(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error


class _Reader:
    """Bounds-checked little-endian fields of a CTranslate2 file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.view = _map(path)
        self.offset = 0

    def take(self, n_bytes: int) -> memoryview:
        start, self.offset = self.offset, self.offset + n_bytes
        if self.offset > len(self.view):
            raise ModelError(f"{self.path}: truncated at byte {start}", "fetch the model again")
        return self.view[start : self.offset]

    def number(self, code: str) -> int:
        return int(struct.unpack("<" + code, self.take(struct.calcsize(code)))[0])

    def text(self) -> str:
        raw = bytes(self.take(self.number("H")))
        try:
            return raw.rstrip(b"\0").decode()
        except UnicodeDecodeError:
            raise ModelError(f"{self.path}: not a CTranslate2 model (bad name)") from None

    def array(self) -> Array:
        n_dims = self.number("B")
        if n_dims > _MAX_DIMS:
            raise ModelError(f"{self.path}: an array of {n_dims} dimensions")
        shape = [self.number("I") for _ in range(n_dims)]
        code = self.number("B")
        if code not in _CT2_DTYPES:
            raise ModelError(f"{self.path}: unknown array type {code}")
        dtype = np.dtype(_CT2_DTYPES[code])
        data = self.take(self.number("I"))
        n_items = 1
        for size in shape:  # Python integers: a hostile shape must not overflow
            n_items *= size
        if len(data) != n_items * dtype.itemsize:
            raise ModelError(f"{self.path}: array size does not fit its shape {shape}")
        return np.frombuffer(data, dtype).reshape(shape)


def _read_ctranslate2(path: Path) -> Checkpoint:
    reader = _Reader(path)
    version, spec = reader.number("I"), reader.text()
    if version not in _CT2_VERSIONS or spec != "WhisperSpec":
        raise ModelError(
            f"{path}: CTranslate2 format {version}, {spec!r}; expected WhisperSpec, format 5 or 6"
        )
    reader.number("I")  # spec revision: the names checked below say what matters
    tensors: dict[str, Array] = {}
    for _ in range(reader.number("I")):
        name = reader.text()
        tensors[name] = reader.array()
    for _ in range(reader.number("I")):
        alias, name = reader.text(), reader.text()
        if name not in tensors:
            raise ModelError(f"{path}: alias {alias!r} of an array that is not there")
        tensors[alias] = tensors[name]
    if any(array.dtype == np.int8 and array.ndim > 0 for name, array in tensors.items() if "weight" in name):
        raise ModelError(f"{path}: already quantised to int8", "use the float16 or float32 CTranslate2 model")
    try:
        n_heads = int(tensors["decoder/num_heads"])
    except (KeyError, TypeError):
        raise ModelError(f"{path}: num_heads is missing") from None
    return Checkpoint(tensors, n_heads)


def read_safetensors(path: Path) -> dict[str, Array]:
    """Read every array of a safetensors file without copying; bfloat16 becomes float32.

    Format: 8-byte header length, JSON header {name: {dtype, shape, data_offsets}}, raw data.
    Raises `ModelError` for anything that does not add up.
    """
    view = _map(path)
    header_bytes = int.from_bytes(view[:8], "little")
    if len(view) < 8 or header_bytes > min(_MAX_HEADER_BYTES, len(view) - 8):
        raise ModelError(f"{path}: not a safetensors file (header of {header_bytes} bytes)")
    try:
        header = json.loads(bytes(view[8 : 8 + header_bytes]))
    except ValueError as error:
        raise ModelError(f"{path}: not a safetensors file: {error}") from error
    data = view[8 + header_bytes :]
    try:
        return {name: _safe_array(item, data) for name, item in header.items() if name != "__metadata__"}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: inconsistent header: {error}") from error


def _safe_array(item: Mapping[str, object], data: memoryview) -> Array:
    dtype = np.dtype(_SAFETENSORS_DTYPES[str(item["dtype"])])
    begin, end = (int(x) for x in item["data_offsets"])  # type: ignore[attr-defined]
    shape = [int(x) for x in item["shape"]]  # type: ignore[attr-defined]
    if not 0 <= begin <= end <= len(data):
        raise ValueError(f"data offsets {begin}..{end} of {len(data)} bytes")
    array = np.frombuffer(data[begin:end], dtype).reshape(shape)
    if item["dtype"] == "BF16":  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


_HF_LAYER = {
    "self_attn_layer_norm": "self_attention/layer_norm",
    "self_attn.out_proj": "self_attention/linear_1",
    "encoder_attn_layer_norm": "attention/layer_norm",
    "encoder_attn.q_proj": "attention/linear_0",
    "encoder_attn.out_proj": "attention/linear_2",
    "fc1": "ffn/linear_0",
    "fc2": "ffn/linear_1",
    "final_layer_norm": "ffn/layer_norm",
}
_HF_TOP = {
    "model.encoder.conv1": "encoder/conv1",
    "model.encoder.conv2": "encoder/conv2",
    "model.encoder.layer_norm": "encoder/layer_norm",
    "model.decoder.layer_norm": "decoder/layer_norm",
}


def _from_huggingface(source: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """Rename Hugging Face arrays to CTranslate2's names; q, k, v projections are joined."""
    yield "decoder/embeddings/weight", source["model.decoder.embed_tokens.weight"]
    for part in ("encoder", "decoder"):
        yield f"{part}/position_encodings/encodings", source[f"model.{part}.embed_positions.weight"]
    for theirs, ours in _HF_TOP.items():
        yield from _weight_and_bias(source, theirs, ours)
    for part in ("encoder", "decoder"):
        prefix = f"model.{part}.layers."
        for index in sorted({int(name.split(".")[3]) for name in source if name.startswith(prefix)}):
            yield from _layer(source, f"{prefix}{index}", f"{part}/layer_{index}")


def _layer(source: Mapping[str, Array], theirs: str, ours: str) -> Iterator[tuple[str, Array]]:
    yield from _joined(source, f"{theirs}.self_attn", "qkv", f"{ours}/self_attention/linear_0")
    if f"{theirs}.encoder_attn.k_proj.weight" in source:
        yield from _joined(source, f"{theirs}.encoder_attn", "kv", f"{ours}/attention/linear_1")
    for their_name, our_name in _HF_LAYER.items():
        if f"{theirs}.{their_name}.weight" in source:
            yield from _weight_and_bias(source, f"{theirs}.{their_name}", f"{ours}/{our_name}")


def _weight_and_bias(source: Mapping[str, Array], theirs: str, ours: str) -> Iterator[tuple[str, Array]]:
    names = ("gamma", "beta") if "layer_norm" in ours else ("weight", "bias")
    yield f"{ours}/{names[0]}", source[f"{theirs}.weight"]
    yield f"{ours}/{names[1]}", source[f"{theirs}.bias"]


def _joined(source: Mapping[str, Array], theirs: str, parts: str, ours: str) -> Iterator[tuple[str, Array]]:
    weights = [source[f"{theirs}.{part}_proj.weight"] for part in parts]
    zeros = np.zeros(len(weights[0]), weights[0].dtype)  # Whisper's k_proj has no bias
    biases = [source.get(f"{theirs}.{part}_proj.bias", zeros) for part in parts]
    yield f"{ours}/weight", np.concatenate(weights)
    yield f"{ours}/bias", np.concatenate(biases)
