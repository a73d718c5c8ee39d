"""The shared memory between the processes: features in, draft tokens out, one slot per window in work.

A slot is given to a window by raising its epoch. Whoever copies features out checks the epoch
afterwards, so a slot can be given on without waiting for a process that is late or dead.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np

from as2d_cli.decoding import DraftStream
from as2d_cli.spawning import is_alive
from as2d_cli.types import Features, FeatureSpec

DRAFT_CAPACITY = 1024
"""Draft tokens per window, over twice Whisper's longest text; cutting a longer draft costs speed only."""

_ALIGNMENT = 64
_PREFIX = "as2d-"


@dataclass(frozen=True, slots=True)
class SlotLayout:
    """Size and shape of the slots. The drafter's features are the target's where the specs are equal."""

    count: int
    target: FeatureSpec
    drafter: FeatureSpec | None

    @property
    def specs(self) -> tuple[FeatureSpec, ...]:
        """The distinct feature specs, the target's first."""
        return tuple(dict.fromkeys(spec for spec in (self.target, self.drafter) if spec))

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot."""
        return DraftStream.bytes_needed(DRAFT_CAPACITY) + sum(map(_bytes_of, self.specs))


class Slots:
    """One process's view of the slots. The process that created them calls `unlink`."""

    def __init__(self, layout: SlotLayout, name: str | None = None) -> None:
        """Create the shared memory, or attach to the one called `name`. Raises `OSError`."""
        self.layout = layout
        size = layout.count * layout.slot_bytes
        if name is None:
            _sweep()
            self._memory = SharedMemory(
                f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}", create=True, size=size
            )
        else:
            self._memory = SharedMemory(name)
        self._buffer = memoryview(self._memory.buf or b"")
        self._streams = [
            DraftStream(self._buffer[slot * layout.slot_bytes :], DRAFT_CAPACITY)
            for slot in range(layout.count)
        ]

    @property
    def name(self) -> str:
        """Name by which other processes attach."""
        return self._memory.name

    def stream(self, slot: int) -> DraftStream:
        """Return the draft stream of a slot."""
        return self._streams[slot]

    def put(self, slot: int, spec: FeatureSpec, features: Features) -> None:
        """Copy features into a slot, after its stream has been reset to the window's epoch."""
        self._view(slot, spec)[:] = features

    def take(self, slot: int, spec: FeatureSpec) -> Features:
        """Return a copy of a slot's features; valid if the slot's epoch is still the window's."""
        return np.array(self._view(slot, spec))

    def _view(self, slot: int, spec: FeatureSpec) -> Features:
        start = slot * self.layout.slot_bytes + DraftStream.bytes_needed(DRAFT_CAPACITY)
        for other in self.layout.specs[: self.layout.specs.index(spec)]:
            start += _bytes_of(other)
        return np.frombuffer(self._buffer, np.float32, int(np.prod(spec.shape)), start).reshape(spec.shape)

    def close(self) -> None:
        """Let go of the memory in this process."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()
        self._buffer.release()
        self._memory.close()

    def unlink(self) -> None:
        """Remove the memory; it is gone once all processes have let go of it."""
        self._memory.unlink()


def _sweep() -> None:
    """Remove what is left of runs all of whose processes were killed; Linux shows shared memory as files."""
    for path in Path("/dev/shm").glob(f"{_PREFIX}*-*"):
        process = path.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdecimal() and not is_alive(int(process)):
            with suppress(OSError):
                path.unlink()


def _bytes_of(spec: FeatureSpec) -> int:
    size = 4 * spec.n_mels * spec.n_frames
    return -(-size // _ALIGNMENT) * _ALIGNMENT
