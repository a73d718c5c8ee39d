"""Reads files of named arrays: CTranslate2's `model.bin` and safetensors. Nothing in them is executed.

Arrays are views of the mapped file, so that a hostile header cannot ask for memory.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError

Array = NDArray[np.generic]

_CT2_DTYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
_CT2_VERSIONS = range(5, 7)
_SAFETENSORS_DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
_MAX_DIMS = 8
_MAX_COUNT = 2**40
_MAX_HEADER_BYTES = 100_000_000  # the limit that the safetensors format itself sets


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
        if len(data) != math.prod(shape) * dtype.itemsize:  # Python integers do not overflow
            raise ModelError(f"{self.path}: array size does not fit its shape {shape}")
        return np.frombuffer(data, dtype).reshape(shape)


def read_ctranslate2(path: Path) -> dict[str, Array]:
    """Read every array of a CTranslate2 Whisper model without copying. Raises `ModelError`.

    Format (OpenNMT/CTranslate2 `specs/model_spec.py`): version, spec name, revision, arrays, aliases.
    """
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
    return tensors


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
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a safetensors file: {error}") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path}: not a safetensors file: its header is no object")
    data = view[8 + header_bytes :]
    arrays: dict[str, Array] = {}
    for name, item in header.items():
        if name != "__metadata__":
            try:
                arrays[name] = _safe_array(item, data)
            except (KeyError, TypeError, ValueError) as error:
                raise ModelError(f"{path}: array {name!r}: {error}") from error
    return arrays


def _safe_array(item: Mapping[str, object], data: memoryview) -> Array:
    """Return one array. Raises KeyError, TypeError or ValueError."""
    kind = item["dtype"]
    if kind not in _SAFETENSORS_DTYPES:
        raise ValueError(f"values of type {kind}, expected one of {', '.join(_SAFETENSORS_DTYPES)}")
    dtype = np.dtype(_SAFETENSORS_DTYPES[str(kind)])
    shape = _counts(item["shape"])
    begin, end = _counts(item["data_offsets"])
    if not begin <= end <= len(data):
        raise ValueError(f"data offsets {begin}..{end} of {len(data)} bytes")
    if len(shape) > _MAX_DIMS or math.prod(shape) * dtype.itemsize != end - begin:
        raise ValueError(f"{end - begin} bytes do not fit the shape {shape}")
    array = np.frombuffer(data[begin:end], dtype).reshape(shape)
    if kind == "BF16":  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def _counts(value: object) -> list[int]:
    """Return `value` if it is a list of sizes or offsets: JSON may hold anything. Raises TypeError."""
    if not isinstance(value, list) or not all(
        type(item) is int and 0 <= item <= _MAX_COUNT for item in value
    ):
        raise TypeError("a list of sizes or offsets is not one")
    return value
