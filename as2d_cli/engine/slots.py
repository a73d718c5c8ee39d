"""The shared memory between the processes: features in, draft tokens out, one slot per window in work.

There are two pieces. The drafter maps only its own, with the drafts and what it hears; what decides the
text, the features that the target hears, is out of its reach, whatever goes wrong there.

A slot is given to a window by raising its epoch. Whoever copies features out checks the epoch
afterwards, so a slot can be given on without waiting for a process that is late or dead.
"""

from __future__ import annotations

import errno
import os
import resource
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np

from as2d_cli.decoding import DraftStream
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import NOTHING_HEARD, SAMPLE_RATE_HZ, WINDOW_S, Features, FeatureSpec, Samples
from as2d_cli.system.spawning import is_alive

DRAFT_CAPACITY = 1024
"""Draft tokens per window, over twice Whisper's longest text; cutting a longer draft costs speed only."""

_ALIGNMENT = 64
_SAMPLES_BYTES = 4 * int(WINDOW_S * SAMPLE_RATE_HZ)
_PREFIX = "as2d-"
_OF_TARGET = "-target"
_LINUX = Path("/dev/shm")
"""Where Linux shows shared memory as files."""


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
        """Bytes of one slot in the memory that the drafter maps."""
        return DraftStream.bytes_needed(DRAFT_CAPACITY) + (_bytes_of(self.drafter) if self.drafter else 0)


class Slots:
    """One process's view of the slots. The process that created them calls `unlink`."""

    def __init__(self, layout: SlotLayout, name: str | None = None, *, of_drafter: bool = False) -> None:
        """Create the shared memory, or attach to the one called `name`; `of_drafter`, only to its part.

        Raises `ModelError` if the system has no room for it, `OSError` if there is none of that name.
        """
        self.layout = layout
        sizes = {"": layout.count * layout.slot_bytes}
        if not of_drafter:
            sizes[_OF_TARGET] = layout.count * _target_bytes(layout) or 1  # none may be empty
        if name is None:
            sweep_memory()
            self._memories = _created(sizes)
        else:
            self._memories = [SharedMemory(f"{name}{part}") for part in sizes]
        self._buffers = [memoryview(memory.buf or b"") for memory in self._memories]
        self._streams = [
            DraftStream(self._buffers[0][slot * layout.slot_bytes :], DRAFT_CAPACITY)
            for slot in range(layout.count)
        ]

    @property
    def name(self) -> str:
        """Name by which other processes attach."""
        return self._memories[0].name

    def stream(self, slot: int) -> DraftStream:
        """Return the draft stream of a slot."""
        return self._streams[slot]

    def put(self, slot: int, spec: FeatureSpec, features: Features) -> None:
        """Copy features to who hears them, after the slot's stream has been reset to the window's epoch."""
        content = np.asarray(features, np.float32).tobytes()
        for memory, start in self._places(slot, spec):
            # No array over the memory: the traceback of whoever is stopped here would hold it, open for good.
            memory[start : start + _size(spec)] = content

    def put_samples(self, slot: int, samples: Samples) -> None:
        """Copy a window's audio to the target, for second decodings of parts of it."""
        content = np.asarray(samples, np.float32).tobytes()
        start = slot * _target_bytes(self.layout) + _bytes_of(self.layout.target)
        self._buffers[1][start : start + len(content)] = content

    def take_samples(self, slot: int, count: int) -> Samples:
        """Return a copy of a slot's first `count` samples; valid as `take` is."""
        start = slot * _target_bytes(self.layout) + _bytes_of(self.layout.target)
        return np.array(np.frombuffer(self._buffers[1], np.float32, count, start))

    def take(self, slot: int, spec: FeatureSpec) -> Features:
        """Return a copy of a slot's features; valid if the slot's epoch is still the window's."""
        memory, start = self._places(slot, spec)[0]
        return np.array(np.frombuffer(memory, np.float32, _size(spec) // 4, start).reshape(spec.shape))

    def _places(self, slot: int, spec: FeatureSpec) -> list[tuple[memoryview, int]]:
        """Return where features begin, the target's first."""
        places = []
        if spec == self.layout.target and len(self._buffers) > 1:
            places.append((self._buffers[1], slot * _target_bytes(self.layout)))
        if spec == self.layout.drafter:
            start = slot * self.layout.slot_bytes + DraftStream.bytes_needed(DRAFT_CAPACITY)
            places.append((self._buffers[0], start))
        return places

    def close(self) -> None:
        """Let go of the memory in this process."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()
        for buffer in self._buffers:
            buffer.release()
        for memory in self._memories:
            memory.close()

    def unlink(self) -> None:
        """Remove the memory; it is gone once all processes have let go of it."""
        for memory in self._memories:
            memory.unlink()


def _created(sizes: Mapping[str, int]) -> list[SharedMemory]:
    """Make pieces of shared memory whose names begin alike. Raises `ModelError`."""
    name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    made: list[SharedMemory] = []
    try:
        _check_limit(max(sizes.values()))
        for part, size in sizes.items():
            made.append(SharedMemory(f"{name}{part}", create=True, size=size))
            _reserve(made[-1].name, size)
    except OSError as error:
        for memory in made:
            memory.close()
            memory.unlink()
        raise ModelError(
            f"there is no shared memory for the models' processes: {error.strerror or error}",
            f"{sum(sizes.values()) / 1e6:.0f} MB are needed; containers take --shm-size",
        ) from error
    return made


def _check_limit(size: int) -> None:
    """Raise `OSError` beyond `ulimit -f`: found out by `SharedMemory`, Python's tracker shows a traceback."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and size > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def _reserve(name: str, size: int) -> None:
    """Have Linux make room: it gives out what it may not have, and ends by SIGBUS whoever writes there."""
    with suppress(FileNotFoundError):  # other systems do not show it as a file
        descriptor = os.open(_LINUX / name, os.O_RDWR)
        try:
            os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)


def sweep_memory() -> None:
    """Remove what is left of runs all of whose processes were killed, where it can be seen."""
    for path in _LINUX.glob(f"{_PREFIX}*-*"):
        process = path.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdecimal() and not is_alive(int(process)):
            with suppress(OSError):
                path.unlink()


def unlink_own() -> None:
    """Remove the memory of this process, which is about to be killed; whoever has it open keeps it."""
    for path in _LINUX.glob(f"{_PREFIX}{os.getpid()}-*"):
        with suppress(OSError):
            path.unlink()


def _size(spec: FeatureSpec) -> int:
    return 4 * spec.n_mels * spec.n_frames


def _target_bytes(layout: SlotLayout) -> int:
    """Return the bytes of a slot in the memory that the target alone maps: features, then the audio."""
    return _bytes_of(layout.target) + _SAMPLES_BYTES if layout.target != NOTHING_HEARD else 0


def _bytes_of(spec: FeatureSpec) -> int:
    return -(-_size(spec) // _ALIGNMENT) * _ALIGNMENT
