"""The limits that control groups set this process, in version 1 and 2: containers and services have them.

A limit of any group above binds as well. In a container the path that the kernel tells may be the host's;
then what is mounted at the root is the container's own group.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

_UNLIMITED_BYTES = 1 << 60
"""Version 1 tells a limit that no machine reaches where there is none."""


@cache
def cpu_quota() -> float | None:
    """Return how many processors' time this process may take; None if that is not limited."""
    quotas = [quota for group in _groups("cpu") if (quota := _quota(group)) is not None]
    return min(quotas, default=None)


def memory_left_bytes() -> int | None:
    """Return how much more memory this process may take; None if that is not limited."""
    left = [left for group in _groups("memory") if (left := _memory_left(group)) is not None]
    return min(left, default=None)


def _groups(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's group and all above it, as far as they are mounted."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    root = Path("/sys/fs/cgroup")
    for line in lines:
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number != "0" and controller not in names.split(","):
            continue
        mount = root if number == "0" else root / controller
        own = PurePosixPath(path)
        for group in (own, *own.parents):
            folder = mount / str(group).lstrip("/")
            if folder.is_dir():
                yield folder


def _quota(group: Path) -> float | None:
    words = _words(group / "cpu.max")
    if not words:
        words = [*_words(group / "cpu.cfs_quota_us"), *_words(group / "cpu.cfs_period_us")]
    numbers = [int(word) for word in words if word.isdecimal()]  # "max" and -1 are no limit
    if len(numbers) != 2 or not all(numbers):
        return None
    return numbers[0] / numbers[1]


def _memory_left(group: Path) -> int | None:
    for limit_name, used_name in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        limit, used = _bytes(group / limit_name), _bytes(group / used_name)
        if limit is not None and used is not None and limit < _UNLIMITED_BYTES:
            return max(0, limit - used + _reclaimable_bytes(group))
    return None


def _reclaimable_bytes(group: Path) -> int:
    """Return what the group's files take in the page cache and would give back."""
    words = _words(group / "memory.stat")
    figures = dict(zip(words[::2], words[1::2], strict=False))
    return int(figures.get("total_inactive_file", figures.get("inactive_file", "0")))


def _bytes(path: Path) -> int | None:
    words = _words(path)
    return int(words[0]) if words and words[0].isdecimal() else None


def _words(path: Path) -> list[str]:
    """Return the words of a file; none if there is no such file."""
    try:
        return path.read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return []
