"""Keeps the channels of a recording apart, for each to be heard by itself: interviews, telephone calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from as2d_cli.audio.readers import Chunk
from as2d_cli.domain.errors import AudioError

_SAME = 0.98
"""Channels that correlate more than this hold the same; a microphone hears another speaker, too, but less."""


class Apart:
    """Passes on one file's channels, as many as its beginning has."""

    def __init__(self, name: str) -> None:
        """`name` is the file's, for messages."""
        self._name = name
        self._products = np.zeros((0, 0))

    def columns(self, chunks: Iterator[Chunk]) -> Iterator[tuple[NDArray[np.float32], int]]:
        """Yield the samples of each chunk, shape (n_samples, n_channels), and its rate.

        Channels that a later part of the file lacks are silent there. Raises `AudioError` if it has more.
        """
        at_s = 0.0
        for samples, rate, _ in _with_channels(chunks):
            if not len(self._products):
                self._products = np.zeros((samples.shape[1], samples.shape[1]))
            missing = len(self._products) - samples.shape[1]
            if missing < 0:
                raise AudioError(
                    f"{self._name}: has {samples.shape[1]} channels from {at_s:.1f} s, before that fewer",
                    "--channel mix hears all of them",
                )
            whole = np.pad(samples, ((0, 0), (0, missing))) if missing else samples
            self._products += whole.T @ whole
            at_s += len(samples) / rate
            yield whole, rate

    @property
    def same(self) -> tuple[int, int] | None:
        """The numbers of two channels that have held the same so far."""
        levels = np.sqrt(self._products.diagonal())
        pairs = combinations(np.flatnonzero(levels), 2)
        return next(
            (
                (int(one) + 1, int(other) + 1)
                for one, other in pairs
                if self._products[one, other] > _SAME * levels[one] * levels[other]
            ),
            None,
        )


def _with_channels(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks, silence at the beginning with as many channels as what follows it.

    What stands for a late beginning is mono, whatever comes then.
    """
    silent: list[tuple[int, int]] = []
    for chunk in chunks:
        if chunk.samples.shape[1] == 1 and not chunk.samples.any():
            silent.append((len(chunk.samples), chunk.rate))
            continue
        yield from _silence(silent, chunk.samples.shape[1])
        yield chunk
        yield from chunks
        return
    yield from _silence(silent, 1)


def _silence(lengths: list[tuple[int, int]], n_channels: int) -> Iterator[Chunk]:
    for length, rate in lengths:
        yield Chunk(np.zeros((length, n_channels), np.float32), rate)
