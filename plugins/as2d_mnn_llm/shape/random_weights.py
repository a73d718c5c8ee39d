"""Random weights of any size, made as they are written, to find out what a model of that shape costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from as2d_mnn_llm.export.records import QuantisedLinear

_PIECE_VALUES = 8_000_000
_SMALLEST = 0.75


class RandomWeights:
    """Gives matrices in pieces that share their codes but for a factor: drawing gigabytes takes minutes.

    Values are about as large as trained ones, so that nothing overflows in many layers.
    """

    def __init__(self, block: int) -> None:
        self._block = block
        self._rng = np.random.default_rng(0)

    def matrix(self, out: int, inner: int, bits: int, *, bias: bool = False) -> Iterator[QuantisedLinear]:
        """Yield a matrix of (out, inner) in pieces of some millions of values."""
        block = self._block if inner % self._block == 0 else self._block // 2
        rows = min(out, max(1, _PIECE_VALUES // inner))
        codes = self._rng.integers(0, 1 << bits, (rows, inner), dtype=np.uint8)
        levels = np.float32((1 << bits) - 1)
        spread = np.float32(2 * np.sqrt(3 / inner))
        for start in range(0, out, rows):
            count = min(rows, out - start)
            factor = np.float32(self._rng.uniform(_SMALLEST, 1))
            scale = np.full((count, inner // block), factor * spread / levels, np.float32)
            offset = np.zeros(count, np.float32) if bias else None
            yield QuantisedLinear(
                bits, block, codes[:count], scale, -scale * (levels / np.float32(2)), offset
            )

    def vector(self, size: int) -> NDArray[np.float32]:
        """Return ones, disturbed a little."""
        return (1 + self._rng.standard_normal(size) / 100).astype(np.float32)

    def small(self, size: int) -> NDArray[np.float32]:
        """Return numbers about zero."""
        return (self._rng.standard_normal(size) / 100).astype(np.float32)
