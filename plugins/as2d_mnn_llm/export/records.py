"""Quantised matrices, and the file that MNN's LLM engine reads them from.

The layout of a record is what MNN 3.6.1 reads for a 1x1 convolution with external weights: a header
(dimensions, and a table of the signed code values), the codes row by row, then an (offset, scale) pair of
float32 for each block, then the bias. Four-bit codes are packed in twos, the first in the high nibble.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError

_UINT16_MAX = 65535
_BITS = (4, 8)


@dataclass(frozen=True, slots=True, eq=False)
class QuantisedLinear:
    """A matrix, or some consecutive rows of one: value = minimum + scale * code, block by block along a row.

    Raises `ModelError` if the parts do not fit together.
    """

    bits: int
    """4 or 8."""
    block: int
    """Columns that share a scale; divides the number of columns."""
    codes: NDArray[np.uint8]
    """Shape (out, inner), one code per byte."""
    scale: NDArray[np.float32]
    """Shape (out, inner // block)."""
    minimum: NDArray[np.float32]
    """Shape (out, inner // block)."""
    bias: NDArray[np.float32] | None = None
    """Shape (out,)."""

    def __post_init__(self) -> None:
        """Check bits and shapes."""
        out, inner = self.codes.shape
        if self.bits not in _BITS or inner % self.block:
            raise ModelError(
                f"a matrix of {inner} columns cannot have {self.bits} bits, blocks of {self.block}"
            )
        blocks = (out, inner // self.block)
        if self.scale.shape != blocks or self.minimum.shape != blocks:
            raise ModelError(f"scales of shape {self.scale.shape}; expected {blocks}")
        if self.bias is not None and self.bias.shape != (out,):
            raise ModelError(f"a bias of shape {self.bias.shape}; expected {(out,)}")

    def values(self) -> NDArray[np.float32]:
        """Return the matrix as numbers, shape (out, inner)."""
        codes = self.codes.reshape(*self.scale.shape, self.block).astype(np.float32)
        return (self.minimum[..., None] + self.scale[..., None] * codes).reshape(self.codes.shape)


Matrix = QuantisedLinear | Iterable[QuantisedLinear]
"""A whole matrix, or its rows in consecutive pieces, so that a large one need never be whole in memory."""


def quantise(values: NDArray[np.float32], bits: int, block: int) -> QuantisedLinear:
    """Round `values`, shape (out, inner), to 2**bits evenly spaced levels between each block's extremes.

    Raises `ModelError` for what cannot be cut into such blocks.
    """
    if values.ndim != 2 or values.shape[1] % block:  # a matrix
        raise ModelError(f"a matrix of shape {values.shape} cannot be cut into blocks of {block} columns")
    out, inner = values.shape
    blocks = values.reshape(out, inner // block, block)
    minimum = blocks.min(axis=2)
    scale = np.maximum((blocks.max(axis=2) - minimum) / (2**bits - 1), np.float32(1e-12))
    codes = np.rint((blocks - minimum[..., None]) / scale[..., None]).astype(np.uint8)
    return QuantisedLinear(bits, block, codes.reshape(out, inner), scale, minimum)


@dataclass(frozen=True, slots=True)
class Record:
    """Where a matrix lies in the weight file, bytes, and how it is stored."""

    out: int
    inner: int
    bits: int
    block: int
    offset: int
    header_bytes: int
    code_bytes: int
    scale_bytes: int
    bias_bytes: int

    @property
    def external(self) -> list[int]:
        """The reference that a graph's convolution holds."""
        return [self.offset, self.header_bytes + self.code_bytes, self.scale_bytes, self.bias_bytes, 0]

    @property
    def wide(self) -> bool:
        """Whether its dimensions need 32 bits."""
        return max(self.out, self.inner) > _UINT16_MAX

    @property
    def embedding(self) -> list[int]:
        """The reference by which the engine looks up rows of the matrix as embeddings of tokens."""
        codes = self.offset + self.header_bytes
        return [codes, codes + self.code_bytes, self.scale_bytes, self.bits, self.block]


class WeightFile:
    """Appends matrices and vectors to an open binary file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0

    def matrix(self, matrix: Matrix, out: int, inner: int) -> Record:
        """Append a matrix of `out` rows and `inner` columns. Raises `ModelError` for another shape."""
        pieces = iter((matrix,) if isinstance(matrix, QuantisedLinear) else matrix)
        first = next(pieces, None)
        if first is None:
            raise ModelError(f"a matrix of {out} x {inner} was given without rows")
        offset, scales, biases, rows = self._size, [], [], 0
        header = self._write(_header(out, inner, first.bits))
        for piece in chain([first], pieces):
            if (piece.bits, piece.block, piece.codes.shape[1]) != (first.bits, first.block, inner):
                raise ModelError(f"a matrix of {piece.codes.shape[1]} columns; expected {inner}")
            rows += len(piece.codes)
            self._write(_packed(piece))
            offsets = piece.minimum + np.float32(1 << (piece.bits - 1)) * piece.scale
            scales.append(np.stack((offsets, piece.scale), axis=-1).astype("<f4", copy=False))
            biases += [] if piece.bias is None else [piece.bias]
        if rows != out or (biases and sum(map(len, biases)) != out):
            raise ModelError(f"a matrix of {rows} rows; expected {out}")
        codes = self._size - offset - header
        scale_bytes = sum(self._write(piece.tobytes()) for piece in scales)
        bias_bytes = sum(self._write(piece.astype("<f4").tobytes()) for piece in biases)
        return Record(out, inner, first.bits, first.block, offset, header, codes, scale_bytes, bias_bytes)

    def norm(self, gain: NDArray[np.float32], size: int) -> list[int]:
        """Append the gain of an RMS norm; return its reference. Raises `ModelError` for another shape."""
        if gain.shape != (size,):
            raise ModelError(f"a norm of shape {gain.shape}; expected {(size,)}")
        offset = self._size
        zero = np.zeros(size, "<f4")  # the engine wants an offset, too
        return [offset, self._write(gain.astype("<f4").tobytes()), self._write(zero.tobytes())]

    def plain(self, values: NDArray[np.float32], bias: NDArray[np.float32]) -> list[int]:
        """Append float32 weights of a convolution and its bias; return their reference."""
        offset = self._size
        return [
            offset,
            self._write(values.astype("<f4").tobytes()),
            self._write(bias.astype("<f4").tobytes()),
        ]

    def _write(self, data: bytes) -> int:
        self._file.write(data)
        self._size += len(data)
        return len(data)


def _header(out: int, inner: int, bits: int) -> bytes:
    dimensions = np.array([out, inner], "<i4" if max(out, inner) > _UINT16_MAX else "<u2")
    half = 1 << (bits - 1)
    levels = np.arange(-half, half, dtype=np.int8)
    return b"\x02" + dimensions.tobytes() + bytes([len(levels) % 256]) + levels.tobytes()


def _packed(piece: QuantisedLinear) -> bytes:
    if piece.bits == 8:
        return piece.codes.tobytes()
    flat = piece.codes.reshape(-1, 2)
    return ((flat[:, 0] << 4) | flat[:, 1]).tobytes()
