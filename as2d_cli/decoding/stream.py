"""The draft stream: an append-only array of draft tokens in shared memory, one writer, one reader.

There are no locks and no acknowledgements. Every word of the header has one writer and, but for two
times, carries the epoch (the serial number of the window) it belongs to, so whatever an earlier window
left behind, or publishes late, reads as nothing. Tokens are written before the word that counts them;
should a weakly ordered machine show a count before its tokens, the reader sees a wrong draft token,
which the target rejects: that costs a little time and can never change the text.

This module does not create shared memory, convert vocabularies or judge drafts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import TokenIds

Buffer: TypeAlias = bytearray | memoryview
Clock: TypeAlias = Callable[[], float]
"""Returns seconds; the same origin in all processes (`time.perf_counter` has one), or a virtual clock."""

MAX_EPOCH = 2**31 - 1
_HEADER_WORDS = 8
_HEADER_BYTES = 8 * _HEADER_WORDS
_BYTES_PER_TOKEN = 8  # int32 id and float32 time
_ALIGNMENT = 64  # slots of one buffer laid end to end stay aligned, and off each other's cache lines

# Header words: the writer owns the first two and the last, the slot's owner the next two, the reader one.
_PUBLISHED, _STATE, _EPOCH, _ORIGIN, _CANCELLED, _BEGUN = range(6)


class DraftState(IntEnum):
    """How far the drafter is with a window, and why it stopped."""

    WAITING = 0
    DRAFTING = 1
    ENDED = 2
    """The drafter ended its text by itself; the last token is the target's end id."""
    CAPPED = 3
    LOOPED = 4
    FAILED = 5
    CANCELLED = 6

    @property
    def finished(self) -> bool:
        """True when no more tokens will come."""
        return self >= DraftState.ENDED


_STATES = frozenset(map(int, DraftState))


class DraftStream:
    """One slot for the draft of one window at a time, laid over any writable buffer.

    Every process that takes part maps the same bytes with its own `DraftStream`. The owner of the
    slot calls `reset`; the drafter takes a `writer`, the verify loop a `reader`.

    Raises DecodeError if the buffer is too small, read-only or not aligned to 8 bytes.
    """

    def __init__(self, buffer: Buffer | None, capacity: int, clock: Clock = time.perf_counter) -> None:
        needed = self.bytes_needed(capacity)
        if buffer is None or memoryview(buffer).nbytes < needed:  # None: closed shared memory
            raise DecodeError(f"a draft stream of {capacity} tokens needs {needed} bytes")
        self.capacity = capacity
        self.clock = clock
        self._map(buffer)

    @classmethod
    def in_memory(cls, capacity: int, clock: Clock = time.perf_counter) -> DraftStream:
        """Return a slot in memory that no other process sees."""
        return cls(bytearray(cls.bytes_needed(capacity)), capacity, clock)

    @staticmethod
    def bytes_needed(capacity: int) -> int:
        """Size of a slot for `capacity` tokens, a multiple of 64 so that slots can be laid end to end."""
        size = _HEADER_BYTES + capacity * _BYTES_PER_TOKEN
        return -(-size // _ALIGNMENT) * _ALIGNMENT

    def reset(self, epoch: int) -> None:
        """Give the slot to window `epoch` (1 or more, never used before in this slot).

        All tokens of other epochs vanish, their writers see `cancelled`, and publish times count from now.
        """
        _check_epoch(epoch)
        self.origin[0] = self.clock()
        self.header[_EPOCH] = epoch

    @property
    def epoch(self) -> int:
        """The window that the slot belongs to now; 0 before the first."""
        return int(self.header[_EPOCH])

    def writer(self, epoch: int) -> DraftWriter:
        """Begin to write the draft of window `epoch`."""
        _check_epoch(epoch)
        return DraftWriter(self, epoch)

    def reader(self, epoch: int, vocab_size: int) -> DraftReader:
        """Read the draft of window `epoch` for a target with `vocab_size` ids."""
        _check_epoch(epoch)
        return DraftReader(self, epoch, vocab_size)

    def close(self) -> None:
        """Let go of the buffer so that shared memory can be unmapped; views then see an empty stream."""
        self._map(bytearray(self.bytes_needed(self.capacity)))

    def _map(self, buffer: Buffer) -> None:
        self.header: NDArray[np.int64] = np.frombuffer(buffer, np.int64, _HEADER_WORDS)
        if not (self.header.flags.writeable and self.header.ctypes.data % 8 == 0):
            raise DecodeError("a draft stream needs a writable buffer aligned to 8 bytes")
        self.origin: NDArray[np.float64] = self.header[_ORIGIN : _ORIGIN + 1].view(np.float64)
        self.begun: NDArray[np.float64] = self.header[_BEGUN : _BEGUN + 1].view(np.float64)
        self.ids: TokenIds = np.frombuffer(buffer, np.int32, self.capacity, _HEADER_BYTES)
        times_at = _HEADER_BYTES + self.ids.nbytes
        self.times_ms: NDArray[np.float32] = np.frombuffer(buffer, np.float32, self.capacity, times_at)

    def tagged(self, word: int, epoch: int) -> int:
        """Value of header `word` if it was written for `epoch`, else 0."""
        value = int(self.header[word])
        return value & 0xFFFFFFFF if value >> 32 == epoch else 0

    def tag(self, word: int, epoch: int, value: int) -> None:
        """Store `value` for `epoch` in header `word`: one aligned 8-byte store, so never seen in part."""
        self.header[word] = epoch << 32 | value


class DraftWriter:
    """The drafter's end of a stream, for one window."""

    def __init__(self, stream: DraftStream, epoch: int) -> None:
        self._stream = stream
        self._epoch = epoch
        self.count = 0
        """Tokens published so far."""
        stream.begun[0] = stream.clock()
        stream.tag(_PUBLISHED, epoch, 0)
        stream.tag(_STATE, epoch, DraftState.DRAFTING)

    def publish(self, ids: Sequence[int]) -> int:
        """Append target-vocabulary `ids`; return how many fitted."""
        stream, start = self._stream, self.count
        stop = min(start + len(ids), stream.capacity)
        stream.ids[start:stop] = ids[: stop - start]
        stream.times_ms[start:stop] = (stream.clock() - float(stream.origin[0])) * 1e3
        self.count = stop
        stream.tag(_PUBLISHED, self._epoch, stop)
        return stop - start

    def finish(self, state: DraftState) -> None:
        """Say why no more tokens will come."""
        self._stream.tag(_STATE, self._epoch, state)

    @property
    def full(self) -> bool:
        """True when nothing more fits."""
        return self.count >= self._stream.capacity

    @property
    def cancelled(self) -> bool:
        """True when nobody wants this draft any more."""
        stream = self._stream
        return stream.epoch != self._epoch or int(stream.header[_CANCELLED]) == self._epoch


class DraftReader:
    """The verify loop's end of a stream, for one window."""

    def __init__(self, stream: DraftStream, epoch: int, vocab_size: int) -> None:
        self._stream = stream
        self._epoch = epoch
        self._vocab_size = vocab_size
        self._counted = 0
        self.complete = False
        """True when no token beyond the last snapshot will ever come."""

    def snapshot(self) -> int:
        """Return the number of tokens published so far. Call once per turn: it only ever grows."""
        if self.complete:
            return self._counted
        # The state is read first: if it says finished, the count read after it is final.
        finished = self.state.finished
        count = self._stream.tagged(_PUBLISHED, self._epoch)
        self.complete = finished
        self._counted = min(count, self._stream.capacity)
        return self._counted

    def ids(self, start: int, stop: int) -> list[int]:
        """Copy of the tokens in [start, stop), which must have been published.

        An id that the target does not have becomes 0: a wrong candidate is harmless, an
        out-of-range row in an embedding table is not.
        """
        if start >= stop:  # as in most turns: not worth a slice
            return []
        return [id if 0 <= id < self._vocab_size else 0 for id in self._stream.ids[start:stop].tolist()]

    def times_ms(self, start: int, stop: int) -> list[float]:
        """When the tokens in [start, stop) were published, ms since the slot was reset."""
        times: list[float] = self._stream.times_ms[start:stop].tolist()
        return times

    @property
    def origin_s(self) -> float:
        """When the slot was reset, by the stream's clock."""
        return float(self._stream.origin[0])

    @property
    def begun_s(self) -> float | None:
        """When the drafter took up the window, by the stream's clock; None if it has not."""
        begun = float(self._stream.begun[0])
        return begun if self.state is not DraftState.WAITING and begun >= self.origin_s else None

    @property
    def state(self) -> DraftState:
        """What the drafter says now."""
        state = self._stream.tagged(_STATE, self._epoch)
        return DraftState(state) if state in _STATES else DraftState.FAILED

    def cancel(self) -> None:
        """Ask the drafter to stop; what it has published stays usable."""
        self._stream.header[_CANCELLED] = self._epoch


def _check_epoch(epoch: int) -> None:
    if not 0 < epoch <= MAX_EPOCH:
        raise DecodeError(f"epoch {epoch} of a draft stream is not in 1..{MAX_EPOCH}")


def finished_draft(ids: Sequence[int], vocab_size: int, final: DraftState = DraftState.ENDED) -> DraftReader:
    """Return a reader of a draft that was complete before decoding began."""
    stream = DraftStream.in_memory(len(ids))
    stream.reset(1)
    writer = stream.writer(1)
    writer.publish(ids)
    writer.finish(final)
    return stream.reader(1, vocab_size)


EMPTY = finished_draft([], 0)
"""A finished draft without tokens: decoding with it is plain target-only decoding."""
