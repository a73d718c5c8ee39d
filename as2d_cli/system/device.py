"""Describes this device: its processor, how many threads to use, and how fast it is now."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import time
from pathlib import Path

from as2d_cli.domain.errors import RequestError
from as2d_cli.system.cgroups import cpu_quota, memory_left_bytes

MAX_THREADS = 4096
"""More than any machine has processors: native code would crash."""
_FIXED_WORK = bytes(1 << 20)
_FIXED_REPEATS = 12


def usable_cpus() -> int:
    """Return how many processors this process may use at once: no more than a container's quota fills."""
    quota = cpu_quota()
    return _own_cpus() if quota is None else max(1, min(_own_cpus(), math.ceil(quota)))


def _own_cpus() -> int:
    """Return on how many processors this process may run."""
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
    quota = cpu_quota()
    limit = f" (a quota of {quota:g})" if quota is not None and quota < _own_cpus() else ""
    return f"{_processor()}, {usable_cpus()} CPUs{limit}, {platform.system()} {platform.machine()}"


def free_memory_bytes() -> int | None:
    """Return how much memory models may take now, swap aside; None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    left = memory_left_bytes()
    return min(free if left is None else [*free, left], default=None)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Hardware"))]
    return names[0] if names else platform.processor() or platform.machine()


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
