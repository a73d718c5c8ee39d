"""Peak memory of a command and all its child processes together (Linux).

    python tools/faults/memory.py as2d transcribe FILE...

RSS counts pages shared by several processes once for each of them; PSS counts them once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

_INTERVAL_S = 0.05


def main() -> None:
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    peaks: dict[str, int] = defaultdict(int)
    while process.poll() is None:
        sizes = [sizes_kib(pid) for pid in family(process.pid)]
        for name in ("Rss", "Pss"):
            peaks[name] = max(peaks[name], sum(size.get(name, 0) for size in sizes))
        peaks["largest Rss"] = max([peaks["largest Rss"], *(size.get("Rss", 0) for size in sizes)])
        time.sleep(_INTERVAL_S)
    for name, kib in peaks.items():
        print(f"peak {name}: {kib * 1024 / 1e6:.0f} MB")


def family(root: int) -> list[int]:
    """`root` and its descendants."""
    children = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(stat.parent.name))
    family = [root]
    for pid in family:
        family += children[pid]
    return family


def sizes_kib(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


if __name__ == "__main__":
    main()
