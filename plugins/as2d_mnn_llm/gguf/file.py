"""Reads GGUF files: metadata and where each tensor's bytes lie. Nothing a file claims is believed unchecked.

The format: ggml's `docs/gguf.md`, versions 2 and 3, little-endian. The reader of the `gguf` package is not
used because it believes counts: an array said to have 2^60 items keeps it busy until memory ends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError

Scalar: TypeAlias = int | float | bool | str
Value: TypeAlias = Scalar | list[Scalar]
Bytes: TypeAlias = NDArray[np.uint8]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_DIMENSIONS = 4
_STRING, _ARRAY = 8, 9
_SCALARS: Final[Mapping[int, str]] = {
    **{0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?"},
    **{10: "<Q", 11: "<q", 12: "<d"},
}
_SMALLEST_ENTRY = 13
"""Bytes of a metadata entry at least: the length of its key, its type, its value."""
_SMALLEST_TENSOR = 24
"""Bytes of a tensor's description at least: name, dimension count, type, offset."""


@dataclass(frozen=True, slots=True)
class BlockType:
    """How ggml stores values: `size` of them in `n_bytes` bytes."""

    name: str
    size: int
    n_bytes: int


TYPES: Final[Mapping[int, BlockType]] = {
    0: BlockType("F32", 1, 4),
    1: BlockType("F16", 64, 128),
    2: BlockType("Q4_0", 32, 18),
    3: BlockType("Q4_1", 32, 20),
    6: BlockType("Q5_0", 32, 22),
    8: BlockType("Q8_0", 32, 34),
    12: BlockType("Q4_K", 256, 144),
    14: BlockType("Q6_K", 256, 210),
}
"""The types that can be converted, by ggml's numbers; F16 in blocks that are rounded together."""


@dataclass(frozen=True, slots=True, eq=False)
class GgufTensor:
    """One tensor of `shape` (rows, columns), (1, columns) for a vector; `data` are its rows."""

    name: str
    type: BlockType
    shape: tuple[int, int]
    data: Bytes
    """Shape (rows, bytes per row): part of the file, read when it is used."""


class GgufFile:
    """The metadata and the tensors of one file, by name."""

    def __init__(self, path: Path) -> None:
        """Read the header. Raises `ModelError` for anything that is not a sound GGUF file of known types."""
        self.path = path
        self.metadata: dict[str, Value] = {}
        self.tensors: dict[str, GgufTensor] = {}
        try:
            self._bytes: Bytes = np.memmap(path, np.uint8, "r")
        except OSError as error:
            raise ModelError(f"{path}: {error.strerror or error}") from error
        except ValueError as error:  # numpy's answer to an empty file
            raise self._fault("it is empty") from error
        self._read(_Cursor(self._bytes, self._fault))

    def text(self, key: str) -> str:
        """Return the text at `key`. Raises `ModelError` if there is none."""
        value = self.metadata.get(key)
        if not isinstance(value, str):
            raise self._fault(f"{key} is {'missing' if value is None else 'not a text'}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return the number at `key`, or `default`. Raises `ModelError` if there is neither."""
        value = self.metadata.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._fault(f"{key} is {'missing' if value is None else 'not a number'}")
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        """Return the whole number at `key`, or `default`. Raises `ModelError` if there is neither."""
        value = self.number(key, default)
        if not isinstance(value, int):
            raise self._fault(f"{key} is not a whole number")
        return value

    def texts(self, key: str) -> list[str]:
        """Return the texts at `key`. Raises `ModelError` if there are none."""
        value = self.metadata.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._fault(f"{key} is {'missing' if value is None else 'no list of texts'}")
        return [str(item) for item in value]

    def numbers(self, key: str) -> list[float]:
        """Return the numbers at `key`. Raises `ModelError` if there are none."""
        value = self.metadata.get(key)
        if not isinstance(value, list) or not all(isinstance(item, int | float) for item in value):
            raise self._fault(f"{key} is {'missing' if value is None else 'no list of numbers'}")
        return [float(item) for item in value]

    def integers(self, key: str) -> list[int]:
        """Return the whole numbers at `key`. Raises `ModelError` if there are none."""
        value = self.metadata.get(key)
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise self._fault(f"{key} is {'missing' if value is None else 'no list of whole numbers'}")
        return [int(item) for item in value]

    def tensor(self, name: str) -> GgufTensor:
        """Return the tensor called `name`. Raises `ModelError` if there is none."""
        if name not in self.tensors:
            raise self._fault(f"it has no tensor {name}")
        return self.tensors[name]

    def _fault(self, what: str) -> ModelError:
        return ModelError(f"{self.path}: not a usable GGUF file: {what}", "fetch it again, or another one")

    def _read(self, cursor: _Cursor) -> None:
        if cursor.take(4).tobytes() != _MAGIC:
            raise self._fault("it does not begin with GGUF")
        version = cursor.number("<I")
        if version not in _VERSIONS:
            raise self._fault(f"version {version} is not known")
        n_tensors = cursor.count(_SMALLEST_TENSOR)
        n_entries = cursor.count(_SMALLEST_ENTRY)
        for _ in range(n_entries):
            key = cursor.text()
            if key in self.metadata:
                raise self._fault(f"{key} is there twice")
            self.metadata[key] = cursor.value(cursor.integer("<I"))
        described = [self._description(cursor) for _ in range(n_tensors)]
        alignment = self.integer("general.alignment", 32)
        if alignment < 1 or alignment & (alignment - 1):
            raise self._fault(f"{alignment} is no alignment")
        start = -(-cursor.at // alignment) * alignment
        for name, kind, shape, offset in described:
            if name in self.tensors:
                raise self._fault(f"tensor {name} is there twice")
            self.tensors[name] = self._tensor(name, kind, shape, start + offset)

    def _description(self, cursor: _Cursor) -> tuple[str, int, tuple[int, int], int]:
        name, n_dimensions = cursor.text(), cursor.integer("<I")
        if not 1 <= n_dimensions <= _MAX_DIMENSIONS:
            raise self._fault(f"tensor {name} has {n_dimensions} dimensions")
        sizes = [cursor.integer("<Q") for _ in range(n_dimensions)]
        if any(size > 1 for size in sizes[2:]):
            raise self._fault(f"tensor {name} is neither a vector nor a matrix")
        rows = sizes[1] if n_dimensions > 1 else 1  # the innermost dimension comes first
        return name, cursor.integer("<I"), (rows, sizes[0]), cursor.integer("<Q")

    def _tensor(self, name: str, kind: int, shape: tuple[int, int], start: int) -> GgufTensor:
        if kind not in TYPES:
            known = ", ".join(one.name for one in TYPES.values())
            raise ModelError(
                f"{self.path}: tensor {name} is stored as ggml type {kind}, which cannot be converted",
                f"use a file with the types {known} only",
            )
        rows, columns = shape
        type_ = TYPES[kind]
        row_bytes, rest = columns // type_.size * type_.n_bytes, columns % type_.size
        if rest or not rows or not columns:
            raise self._fault(f"tensor {name} cannot have the shape {rows} x {columns}")
        if start + rows * row_bytes > len(self._bytes):
            raise self._fault(f"it ends within tensor {name}")
        data = self._bytes[start : start + rows * row_bytes].reshape(rows, row_bytes)
        return GgufTensor(name, type_, shape, data)


class _Cursor:
    """Reads on from a place; every length is compared with what is left before it is used."""

    def __init__(self, data: Bytes, fault: Callable[[str], ModelError]) -> None:
        self._data, self._fault = data, fault
        self.at = 0

    def take(self, size: int) -> Bytes:
        """Return the next `size` bytes."""
        if size > len(self._data) - self.at:
            raise self._fault("it ends within its header")
        self.at += size
        return self._data[self.at - size : self.at]

    def number(self, form: str) -> int | float | bool:
        """Return the next number of this form (see `struct`)."""
        found: int | float | bool = struct.unpack(form, self.take(struct.calcsize(form)).tobytes())[0]
        return found

    def integer(self, form: str) -> int:
        """Return the next whole number of this form."""
        return int(self.number(form))

    def count(self, smallest: int) -> int:
        """Return a number of things of at least `smallest` bytes each, which must still be there."""
        count = self.integer("<Q")
        if count > (len(self._data) - self.at) // smallest:
            raise self._fault("it ends within its header")
        return count

    def text(self) -> str:
        """Return the next text."""
        content = self.take(self.count(1)).tobytes()
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._fault("a text in it is not UTF-8") from error

    def value(self, kind: int) -> Value:
        """Return the next value of a metadata type."""
        if kind != _ARRAY:
            return self._scalar(kind)
        kind = self.integer("<I")
        smallest = 8 if kind == _STRING else struct.calcsize(_SCALARS.get(kind, "<B"))
        return [self._scalar(kind) for _ in range(self.count(smallest))]

    def _scalar(self, kind: int) -> Scalar:
        if kind == _STRING:
            return self.text()
        if kind not in _SCALARS:
            raise self._fault(f"metadata type {kind} is not known")
        return self.number(_SCALARS[kind])
