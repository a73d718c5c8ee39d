"""Tells how much of this device's processors others use, and whether that is little enough to measure."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from as2d_cli.system.device import usable_cpus

_SAMPLE_S = 0.3
_QUIET_SHARE = 0.8
"""Least share of the processors that must be idle for a measurement to mean anything."""
_BLURRED_TICKS = 5
"""Ticks by which the accounts of processors and of processes may differ."""


@dataclass(frozen=True, slots=True)
class Load:
    """What others did with the processors on which this process may run."""

    others: float
    """Processors that others kept busy, on the average; the hypervisor counts as one of them."""
    present: int
    usable: int
    """As many of those present may be used at once."""

    @property
    def share(self) -> float:
        """Share of the usable processors that others took: all that they used and that was not to spare."""
        return max(0.0, self.others - (self.present - self.usable)) / self.usable


class LoadWatch:
    """Watches, from its making on, what others do while some processes are at work."""

    def __init__(self, processes: Iterable[int]) -> None:
        """Begin; `processes` and all that they have started are not others."""
        self._processes = tuple(processes)
        self._ticks, self._own_ticks = _ticks(), _ticks_of(self._processes)

    def load(self) -> Load | None:
        """Return the load since the beginning; None where the system does not tell (no /proc/stat)."""
        now = _ticks()
        if self._ticks is None or now is None:
            return None
        own = _ticks_of(self._processes) - self._own_ticks
        every, idle = now.every - self._ticks.every, now.idle - self._ticks.idle
        if every <= 0:
            return None
        others = max(0, every - idle - own - _BLURRED_TICKS)
        return Load(others * now.processors / every, now.processors, usable_cpus())


def is_quiet() -> bool:
    """Tell whether nearly all processors are idle, watching them for a moment.

    Where the system does not say (no /proc/stat), the load average must do.
    """
    watch = LoadWatch(())
    time.sleep(_SAMPLE_S)
    load = watch.load()
    if load is None:
        return os.getloadavg()[0] < (1 - _QUIET_SHARE) * (os.cpu_count() or 1)
    return load.share <= 1 - _QUIET_SHARE


@dataclass(frozen=True, slots=True)
class _Ticks:
    """Clock ticks of all processors on which this process may run, since the system's start."""

    every: int
    idle: int
    processors: int


def _ticks() -> _Ticks | None:
    """Read /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    rows = [[int(field) for field in fields[1:9]] for line in lines if (fields := line.split())[0] in own]
    if not rows:
        return None
    return _Ticks(sum(map(sum, rows)), sum(row[3] + row[4] for row in rows), len(rows))


def _ticks_of(processes: Iterable[int]) -> int:
    """Return the ticks that processes and their descendants, ended ones included, have used so far."""
    used: dict[int, int] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (
                (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            )
        except OSError:  # it has just ended
            continue
        number = int(folder.name)
        children[int(fields[1])].append(number)
        used[number] = sum(map(int, fields[11:15]))  # of itself, and of children that have ended
    left, total = [*processes], 0
    while left:
        number = left.pop()
        total += used.get(number, 0)
        left += children[number]
    return total
