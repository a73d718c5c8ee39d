"""Two thousand windows in one run: are memory, handles and the time per window flat?

    python tools/faults/soak.py FOLDER... [--windows 2000] [-- OPTION...]

Makes as many files of cuts of up to 4 s of the audio in FOLDERs, the same 100 in each round, transcribes them
in one run with OPTIONs of as2d transcribe, and looks at every process each second. Linux only.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import soundfile
from cuts import cuts
from memory import family, sizes_kib

from as2d_cli.domain.types import SAMPLE_RATE_HZ

_CUT_S = 4
_ROUND = 100
"""Windows that differ: rounds take the same time unless something grows."""
_PARTS = 20


@dataclass(frozen=True, slots=True)
class Look:
    """What a process held when so many windows were done."""

    done: int
    resident_kib: int
    handles: int
    threads: int


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as scratch:
        batch, out = Path(scratch) / "in", Path(scratch) / "out"
        batch.mkdir()
        different = [cut for _, cut in islice(cuts(arguments.folders, _CUT_S), _ROUND)]
        for number, cut in enumerate(islice(cycle(different), arguments.windows)):
            soundfile.write(batch / f"{number:05}.wav", cut, SAMPLE_RATE_HZ)
        looks = _watched(batch, out, arguments.options)
        written = sorted(path.stat().st_mtime for path in out.glob("*.srt"))
        print(f"{len(written)} of {arguments.windows} windows in {written[-1] - written[0]:.0f} s\n")
        for line in (*_table(looks, arguments.windows), "", *_paces(written)):
            print(line)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--windows", type=int, default=2000)
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = parser.parse_args(sys.argv[1:end])
    arguments.options = sys.argv[end + 1 :]
    return arguments


def _watched(batch: Path, out: Path, options: Sequence[str]) -> dict[int, list[Look]]:
    command = [str(Path(sys.executable).with_name("as2d")), "transcribe", str(batch), "-o", str(out)]
    process = subprocess.Popen([*command, "-f", "srt", "-q", *options], stdout=subprocess.DEVNULL)
    looks = defaultdict(list)
    while process.poll() is None:
        done = len(list(out.glob("*.srt"))) if out.is_dir() else 0
        for pid in family(process.pid):
            if look := _look(pid, done):
                looks[pid].append(look)
        time.sleep(1)
    if process.returncode:
        sys.exit(f"as2d ended with exit code {process.returncode}")
    return looks


def _look(pid: int, done: int) -> Look | None:
    own = Path(f"/proc/{pid}")
    try:
        return Look(
            done,
            sizes_kib(pid)["Rss"],
            len(list((own / "fd").iterdir())),
            len(list((own / "task").iterdir())),
        )
    except (OSError, KeyError):  # it has just ended
        return None


def _table(looks: dict[int, list[Look]], windows: int) -> Iterator[str]:
    """Compare the beginning of a run's second half with its end, by medians of a twentieth of it each."""
    yield "| process | MiB at half | MiB at the end | change | handles | threads | MiB from tenth to tenth |"
    yield "|---|--:|--:|--:|--:|--:|---|"
    for number, own in enumerate(looks.values()):
        parts = [[look for look in own if look.done * _PARTS // windows == part] for part in range(_PARTS)]
        half, end = parts[_PARTS // 2], parts[-1]
        if not half or not end:  # a process that only tells multiprocessing of shared memory, or has ended
            continue
        before, after = _resident_mib(half), _resident_mib(end)
        handles = _course(half, end, lambda look: look.handles)
        threads = _course(half, end, lambda look: look.threads)
        course = ", ".join(f"{_resident_mib(part):.0f}" for part in parts[1::2] if part)
        change = f"{after / before - 1:+.1%}"
        yield f"| {number} | {before:.1f} | {after:.1f} | {change} | {handles} | {threads} | {course} |"


def _course(half: Sequence[Look], end: Sequence[Look], held: Callable[[Look], int]) -> str:
    """By medians: a look may fall on a moment in which a file is read or an output written."""
    return " to ".join(str(statistics.median_low(map(held, part))) for part in (half, end))


def _resident_mib(looks: Sequence[Look]) -> float:
    return statistics.median(look.resident_kib for look in looks) / 1024


def _paces(written: Sequence[float]) -> Iterator[str]:
    """Compare the time per window of rounds at the beginning, in the middle and at the end."""
    gaps = np.diff(written)
    size = max(1, min(_ROUND, len(gaps) // 4))
    middle = (len(gaps) // 2 - 20) // size * size + 20  # rounds are as at the beginning
    for name, part in (
        ("20 and later", gaps[20 : 20 + size]),
        (f"{middle} and later", gaps[middle : middle + size]),
        (f"the last {size}", gaps[-size:]),
    ):
        median_ms, mean_ms = np.median(part) * 1e3, np.mean(part) * 1e3
        yield f"windows {name}: {median_ms:.0f} ms each (median), {mean_ms:.0f} ms (mean)"


if __name__ == "__main__":
    main()
