"""Resamples audio: chunks of any size and rate become blocks of about a second at one rate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import soxr
from numpy.typing import NDArray

from as2d_cli.audio.readers import Chunk
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples


def gathered(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Join small chunks of equal format until they last a second; FFmpeg's are a few milliseconds."""
    held: list[NDArray[np.float32]] = []
    held_rate = 0
    for samples, rate in chunks:
        if held and (rate != held_rate or samples.shape[1] != held[0].shape[1]):
            yield np.concatenate(held), held_rate
            held = []
        if len(samples):
            held.append(samples)
            held_rate = rate
        if sum(map(len, held)) >= rate:
            yield np.concatenate(held), rate
            held = []
    if held:
        yield np.concatenate(held), held_rate


def resampled(chunks: Iterator[tuple[Samples, int]]) -> Iterator[Samples]:
    """Bring chunks of any rate to `SAMPLE_RATE_HZ`; a rate that changes midway starts afresh."""
    resampler, resampler_rate = None, 0
    for samples, rate in chunks:
        if resampler is not None and rate != resampler_rate:
            yield from _filled(resampler.resample_chunk(samples[:0], last=True))
            resampler = None
        if rate == SAMPLE_RATE_HZ:
            yield from _filled(samples)
            continue
        if resampler is None:
            resampler = soxr.ResampleStream(rate, SAMPLE_RATE_HZ, 1, dtype="float32", quality="HQ")
            resampler_rate = rate
        yield from _filled(resampler.resample_chunk(samples))
    if resampler is not None:
        yield from _filled(resampler.resample_chunk(np.empty(0, np.float32), last=True))


def _filled(samples: Samples) -> Iterator[Samples]:
    if len(samples):
        yield samples
