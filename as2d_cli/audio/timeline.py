"""Puts decoded audio at the times its container gives: gaps become silence, overlaps are cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from as2d_cli.audio.readers import Chunk, Gaps
from as2d_cli.domain.types import SAMPLE_RATE_HZ

_TOLERANCE_S = 0.02
"""Smaller deviations are rounding and jitter."""
_WITNESSES = 3
"""A gap or overlap is as long as the next so many frames agree on: single times may be wrong."""
_LONGEST_OVERLAP_S = 10.0
_RESTART_S = 0.5
"""A clock that goes back further, or to the first moments of the stream, was set anew, as in joined files:
nothing is cut for that."""
_LONGEST_SILENCE_S = 24 * 3600.0
"""In all; beyond it times are damaged, or made to keep us busy."""
_BLOCK_S = 10


class _Frame(NamedTuple):
    chunk: Chunk
    time_s: float
    offset_s: float
    """Its time less the length of all audio before it: constant as long as nothing is missing."""


class Timeline:
    """Places one stream's audio in time, in the order in which it is decoded."""

    def __init__(self, origin_s: float | None) -> None:
        """`origin_s` is the time of the first sample to yield; None: the time of the first frame."""
        self.gaps = Gaps()
        self._waiting: deque[_Frame] = deque()
        self._decoded_s = 0.0
        self._has_begun = False
        self._last_s: float | None = None
        self._last_offset_s = 0.0
        self._origin_s = origin_s
        self._first_s = 0.0
        self._offset_s = 0.0
        """That of a frame that begins where the audio yielded so far ends."""
        self._silence_s = 0.0

    def placed(self, chunk: Chunk, time_s: float | None) -> Iterator[Chunk]:
        """Take a chunk that begins at `time_s`, seconds; None: right after the last one. Yield what is due.

        Where a chunk begins late, silence comes first; where it begins early, it is cut.
        """
        if not self._has_begun:
            self._begin(time_s or 0.0)
        if time_s is not None and time_s != self._last_s:  # a clock that stands still says nothing
            self._last_offset_s = time_s - self._decoded_s
        self._last_s = time_s
        offset_s, at_s = self._last_offset_s, self._decoded_s
        self._decoded_s += len(chunk.samples) / chunk.rate
        if not self._waiting and abs(offset_s - self._offset_s) <= _TOLERANCE_S:
            yield chunk
            return
        self._waiting.append(_Frame(chunk, offset_s + at_s, offset_s))
        if len(self._waiting) > _WITNESSES:
            yield from self._next()
        while self._waiting and abs(self._waiting[0].offset_s - self._offset_s) <= _TOLERANCE_S:
            yield from self._next()

    def rest(self) -> Iterator[Chunk]:
        """Yield what is left once all chunks were placed."""
        while self._waiting:
            yield from self._next()

    def _begin(self, time_s: float) -> None:
        """Note the first time. A container that claims to begin after its audio is not believed."""
        self._has_begun = True
        self._first_s = self._last_offset_s = time_s
        self._offset_s = self._origin_s = time_s if self._origin_s is None else min(self._origin_s, time_s)

    def _next(self) -> Iterator[Chunk]:
        late_s = self._lateness_s()
        frame = self._waiting.popleft()
        samples, rate, layout = frame.chunk
        if late_s > _TOLERANCE_S:
            yield from self._silence(late_s, frame)
        elif late_s < -_TOLERANCE_S:
            kept = samples[round(-late_s * rate) :]
            self._offset_s -= (len(samples) - len(kept)) / rate
            samples = kept
        if len(samples):
            yield Chunk(samples, rate, layout)

    def _lateness_s(self) -> float:
        """Return by how much the next frame begins later than the audio yielded so far ends."""
        lates_s = [frame.offset_s - self._offset_s for frame in self._waiting]
        late_s = min(lates_s) if min(lates_s) > 0 else min(max(lates_s), 0.0)
        restarts = late_s < -_TOLERANCE_S and self._waiting[0].time_s <= self._first_s + _RESTART_S
        if restarts or late_s < -_LONGEST_OVERLAP_S or late_s + self._silence_s > _LONGEST_SILENCE_S:
            self._offset_s += late_s
            return 0.0
        return late_s

    def _silence(self, seconds: float, before: _Frame) -> Iterator[Chunk]:
        """Yield silence: moments in the format of the audio after it, hours as cheap as can be."""
        self._silence_s += seconds
        if before.time_s > self._first_s:  # what comes before all audio is no gap
            self.gaps.first_s = self.gaps.first_s or before.time_s - seconds - (self._origin_s or 0.0)
            self.gaps.count += 1
            self.gaps.total_s += seconds
        kind = before.chunk if seconds < 1.0 else Chunk(np.empty((0, 1), np.float32), SAMPLE_RATE_HZ)
        left = round(seconds * kind.rate)
        self._offset_s += left / kind.rate
        block = np.zeros((min(left, _BLOCK_S * kind.rate), kind.samples.shape[1]), np.float32)
        while left > 0:
            yield kind._replace(samples=block[:left])
            left -= len(block)
