"""Resamples audio: chunks of any size and rate become blocks of about a second at one rate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import soxr

from as2d_cli.audio.readers import Chunk
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples


def gathered(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Join small chunks of equal format until they last a second; FFmpeg's are a few milliseconds."""
    held: list[Chunk] = []
    n_held = 0
    for chunk in chunks:
        if held and _format(chunk) != _format(held[0]):
            yield _joined(held)
            held, n_held = [], 0
        if len(chunk.samples):
            held.append(chunk)
            n_held += len(chunk.samples)
        if n_held >= chunk.rate:
            yield _joined(held)
            held, n_held = [], 0
    if held:
        yield _joined(held)


def _format(chunk: Chunk) -> tuple[int, int, tuple[str, ...]]:
    return chunk.rate, chunk.samples.shape[1], chunk.layout


def _joined(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    return chunks[0]._replace(samples=np.concatenate([chunk.samples for chunk in chunks]))


def resampled(chunks: Iterator[tuple[Samples, int]]) -> Iterator[Samples]:
    """Bring chunks of any rate to `SAMPLE_RATE_HZ`; a rate that changes midway starts afresh.

    All chunks are mono, shape (n_samples,), or all are (n_samples, n_channels).
    """
    resampler, resampler_rate, nothing = None, 0, np.empty(0, np.float32)
    for samples, rate in chunks:
        if resampler is not None and rate != resampler_rate:
            yield from _filled(resampler.resample_chunk(samples[:0], last=True))
            resampler = None
        if rate == SAMPLE_RATE_HZ:
            yield from _filled(samples)
            continue
        if resampler is None:
            n_channels = 1 if samples.ndim == 1 else samples.shape[1]
            resampler = soxr.ResampleStream(rate, SAMPLE_RATE_HZ, n_channels, dtype="float32", quality="HQ")
            resampler_rate, nothing = rate, samples[:0]
        yield from _filled(resampler.resample_chunk(samples))
    if resampler is not None:
        yield from _filled(resampler.resample_chunk(nothing, last=True))


def _filled(samples: Samples) -> Iterator[Samples]:
    if len(samples):
        yield samples
