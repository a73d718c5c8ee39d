"""A contestant in a process of its own, and what that process and its children take."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
from contestants import CONTESTANTS, Heard, Setting

from as2d_cli.engine.measure import peak_bytes_of

_SETTLE_S = 0.4
"""Left idle before each file: OpenMP's threads spin for 0.2 s after their last work."""


@dataclass(frozen=True, slots=True)
class Lap:
    """One file, once: what was heard, time, and peak memory of all processes so far."""

    heard: Heard
    wall_s: float
    cpu_s: float
    others_s: float
    """Processor time that other programs took meanwhile."""
    peak_bytes: int


class Racer:
    """A contestant that waits for files."""

    def __init__(self, name: str, setting: Setting) -> None:
        """Start and load it. Raises EOFError if that fails; the process says why."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, setting), name=name)
        self._process.start()
        theirs.close()
        self.load_s: float = self._pipe.recv()

    def run(self, path: Path, language: str | None, *, timed: bool) -> Lap:
        """Transcribe one file. Raises EOFError if the process ends over it."""
        time.sleep(_SETTLE_S)
        ours_s, all_s = self._cpu_s(), _busy_s()
        self._pipe.send((path, language, timed))
        heard, wall_s = self._pipe.recv()
        all_s, ours_s = _busy_s() - all_s, self._cpu_s() - ours_s
        return Lap(heard, wall_s, ours_s, max(0.0, all_s - ours_s), self._peak_bytes())

    def stop(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()

    def _family(self) -> Iterator[psutil.Process]:
        root = psutil.Process(self._process.pid)
        yield from (root, *root.children(recursive=True))

    def _cpu_s(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._family())

    def _peak_bytes(self) -> int:
        """Sum of each process's largest resident size, an upper bound of what they took together (Linux)."""
        return sum(peak_bytes_of(process.pid) or 0 for process in self._family())


def _busy_s() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def _serve(pipe: Connection, name: str, setting: Setting) -> None:
    began = time.perf_counter()
    with closing(CONTESTANTS[name](setting)) as contestant:
        pipe.send(time.perf_counter() - began)
        with suppress(EOFError):  # the race is over
            while True:
                path, language, timed = pipe.recv()
                began = time.perf_counter()
                heard = contestant.transcribe(path, language, timed=timed)
                pipe.send((heard, time.perf_counter() - began))
