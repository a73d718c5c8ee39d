"""Describes this device: its processor, the cores to use, and whether it is quiet enough to measure."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from pathlib import Path

from as2d_cli.domain.errors import RequestError

_SAMPLE_S = 0.3
_QUIET_SHARE = 0.8
"""Least share of all processors that must be idle for a measurement to mean anything."""
MAX_THREADS = 4096
"""More than any machine has processors: native code would crash."""
_FIXED_WORK = bytes(1 << 20)
_FIXED_REPEATS = 12


def usable_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_threads(asked: int | None) -> int:
    """Return how many threads to use: as many as are asked for, or one for each processor.

    Raises `RequestError` for more than `MAX_THREADS`.
    """
    if asked is not None and not 1 <= asked <= MAX_THREADS:
        raise RequestError(f"threads cannot be {asked}", f"give a number from 1 to {MAX_THREADS}")
    return asked or usable_cpus()


def device() -> str:
    """Describe the processor and how many of its cores this process may use."""
    return f"{_processor()}, {usable_cpus()} CPUs, {platform.system()} {platform.machine()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Hardware"))]
    return names[0] if names else platform.processor() or platform.machine()


def is_quiet(*, after_work: bool = False) -> bool:
    """Tell whether nearly all processors are idle, watching them for a moment.

    Where the system does not say (no /proc/stat), the load average must do. It is of a whole minute, so
    `after_work` of our own it would tell of that, and the machine is taken to be quiet.
    """
    before = _ticks()
    if before is None:
        return after_work or os.getloadavg()[0] < (1 - _QUIET_SHARE) * (os.cpu_count() or 1)
    time.sleep(_SAMPLE_S)
    after = _ticks() or before
    total, idle = after[0] - before[0], after[1] - before[1]
    return total > 0 and idle / total >= _QUIET_SHARE


def fixed_work_ms() -> float:
    """Time a fixed piece of work, about 30 ms in all: by how much it grows, all else takes longer, too.

    Hashing: neither memory nor libraries decide how long it takes, only the pace of one processor.
    """
    times = []
    for _ in range(_FIXED_REPEATS):
        began = time.perf_counter()
        hashlib.blake2b(_FIXED_WORK).digest()
        times.append(time.perf_counter() - began)
    return sorted(times)[_FIXED_REPEATS // 4] * 1e3


def _ticks() -> tuple[int, int] | None:
    """Return clock ticks of all processors since the start: all, and idle ones (proc(5))."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    ticks = [int(field) for field in fields]
    return sum(ticks), ticks[3] + ticks[4]
