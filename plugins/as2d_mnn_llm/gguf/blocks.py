"""ggml's quantised blocks as rows of codes with scales: bit for bit where MNN has the like, else eight bits.

Layouts: ggml's `ggml-common.h` (`block_q4_1` and so on) and `dequantize_row_*` in its `ggml-quants.c`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError
from as2d_mnn_llm.export.records import QuantisedLinear, quantise
from as2d_mnn_llm.gguf.file import Bytes, GgufTensor

PIECE_ROWS: Final = 4096
"""Rows turned at a time: a vocabulary's worth of float32 would take gigabytes."""
_ROUNDED_BLOCK: Final = 64
"""Block of what has to be rounded to eight bits: it divides the widths of all models, 128 does not."""

Floats = NDArray[np.float32]


def pieces(tensor: GgufTensor, order: NDArray[np.intp] | None = None) -> Iterator[QuantisedLinear]:
    """Yield the rows of a matrix, in `order` if given, in consecutive pieces.

    Raises `ModelError` for a matrix that is not quantised.
    """
    if tensor.type.name not in _BLOCKS:
        raise ModelError(f"tensor {tensor.name} is stored as {tensor.type.name}; expected a quantised type")
    unpack = _BLOCKS[tensor.type.name]
    rows = tensor.shape[0]
    for start in range(0, rows, PIECE_ROWS):
        chosen = slice(start, start + PIECE_ROWS) if order is None else order[start : start + PIECE_ROWS]
        data = np.ascontiguousarray(tensor.data[chosen])
        yield unpack(data.reshape(len(data), -1, tensor.type.n_bytes))


def vector(tensor: GgufTensor) -> Floats:
    """Return a float32 vector, shape (columns,). Raises `ModelError` for anything else."""
    if tensor.type.name != "F32" or tensor.shape[0] != 1:
        raise ModelError(f"tensor {tensor.name} is not a vector of float32")
    return np.frombuffer(tensor.data.tobytes(), "<f4").astype(np.float32)


def _half(blocks: Bytes, at: int) -> Floats:
    """Return the half-precision number at byte `at` of each block."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view("<f2")[..., 0].astype(np.float32)


def _nibbles(packed: Bytes) -> Bytes:
    """Return all low nibbles of each block, then all high ones."""
    return np.concatenate((packed & 15, packed >> 4), axis=-1)


def _f16(blocks: Bytes) -> QuantisedLinear:
    values = np.ascontiguousarray(blocks).view("<f2").astype(np.float32)
    return quantise(values.reshape(len(blocks), -1), 8, _ROUNDED_BLOCK)


def _q4_0(blocks: Bytes) -> QuantisedLinear:
    scale = _half(blocks, 0)
    codes = _nibbles(blocks[..., 2:])
    return QuantisedLinear(4, 32, codes.reshape(len(codes), -1), scale, -8 * scale)


def _q4_1(blocks: Bytes) -> QuantisedLinear:
    codes = _nibbles(blocks[..., 4:])
    return QuantisedLinear(4, 32, codes.reshape(len(codes), -1), _half(blocks, 0), _half(blocks, 2))


def _q8_0(blocks: Bytes) -> QuantisedLinear:
    scale = _half(blocks, 0)
    codes: Bytes = blocks[..., 2:] ^ np.uint8(128)  # from signed to the distance from -128
    return QuantisedLinear(8, 32, codes.reshape(len(codes), -1), scale, -128 * scale)


def _q5_0(blocks: Bytes) -> QuantisedLinear:
    """Five bits, the highest of which are apart: exact in eight."""
    scale = _half(blocks, 0)
    fifth = np.unpackbits(blocks[..., 2:6], axis=-1, bitorder="little")
    codes: Bytes = _nibbles(blocks[..., 6:]) | (fifth << np.uint8(4))
    return QuantisedLinear(8, 32, codes.reshape(len(codes), -1), scale, -16 * scale)


def _q4_k(blocks: Bytes) -> QuantisedLinear:
    """Eight sub-blocks of 32; their scales and minima are six bits each, packed in twelve bytes."""
    low, mid, high = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
    scales = np.concatenate((low & 63, (high & 15) | (low >> 6 << 4)), axis=-1)
    minima = np.concatenate((mid & 63, (high >> 4) | (mid >> 6 << 4)), axis=-1)
    scale = _half(blocks, 0)[..., None] * scales
    minimum = -_half(blocks, 2)[..., None] * minima
    groups = blocks[..., 16:].reshape(*blocks.shape[:2], 4, 32)  # of two sub-blocks each
    codes = _nibbles(groups)
    rows = len(blocks)
    return QuantisedLinear(4, 32, codes.reshape(rows, -1), scale.reshape(rows, -1), minimum.reshape(rows, -1))


def _q6_k(blocks: Bytes) -> QuantisedLinear:
    """Six bits with a scale for 16 values each, for which MNN has no like: rounded to eight bits."""
    shape = blocks.shape[:2]
    low = blocks[..., :128].reshape(*shape, 2, 2, 32)  # halves of 128 values, in each two runs of bytes
    top = blocks[..., 128:192].reshape(*shape, 2, 1, 32)
    shifts = np.array((0, 2, 4, 6), np.uint8)[:, None]
    nibbles = np.concatenate((low & 15, low >> 4), axis=-2)  # the four runs of 32 values of a half
    codes = nibbles | ((top >> shifts & 3) << 4)
    signed = codes.reshape(*shape, 16, 16).astype(np.float32) - 32
    scales = blocks[..., 192:208].view(np.int8).astype(np.float32) * _half(blocks, 208)[..., None]
    values = signed * scales[..., None]
    return quantise(values.reshape(len(blocks), -1), 8, _ROUNDED_BLOCK)


_BLOCKS: Final[Mapping[str, Callable[[Bytes], QuantisedLinear]]] = {
    "F16": _f16,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q6_K": _q6_k,
}
