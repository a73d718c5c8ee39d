"""A long batch: is memory flat, and does it survive being killed?

    python tools/faults/endurance.py FOLDER... [--files 200] [--kills 20] [--seed 0]

Makes a batch of short cuts of the audio in FOLDERs, transcribes it once undisturbed while watching the
memory of every process, then once more with random SIGKILL and SIGINT, each time started again, and
compares the outputs. Linux only.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import soundfile
from cuts import cuts
from memory import family, sizes_kib

from as2d_cli.domain.types import SAMPLE_RATE_HZ

_CUT_S = 6


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        _make_batch(arguments.folders, root / "in", arguments.files)
        reference = _undisturbed(root / "in", root / "reference", arguments.files)
        _disturbed(root / "in", root / "out", random.Random(arguments.seed), arguments.kills)
        _compare(reference, root / "out")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _make_batch(folders: Sequence[Path], batch: Path, count: int) -> None:
    batch.mkdir()
    for number, (stem, cut) in enumerate(islice(cuts(folders, _CUT_S), count)):
        soundfile.write(batch / f"{number:03}_{stem}.wav", cut, SAMPLE_RATE_HZ)


def _start(batch: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [Path(sys.executable).with_name("as2d"), "transcribe", batch, "-o", out, "-f", "json,srt"]
    return subprocess.Popen([*map(str, command), "-q"], stdout=subprocess.DEVNULL)


def _undisturbed(batch: Path, out: Path, count: int) -> Path:
    """Run once; print each process's resident size over files 51-100 and over the last 50."""
    process = _start(batch, out)
    seen: list[tuple[int, list[int]]] = []
    while process.poll() is None:
        done = len(list(out.glob("*.srt"))) if out.is_dir() else 0
        sizes = sorted(sizes_kib(pid).get("Rss", 0) for pid in family(process.pid))
        seen.append((done, sizes))
        time.sleep(0.5)
    print(f"undisturbed: exit {process.returncode}, {len(list(out.glob('*.srt')))} of {count} files")
    early = [sizes for done, sizes in seen if 50 <= done < 100]
    late = [sizes for done, sizes in seen if count - 50 <= done < count]
    widths = max(len(sizes) for sizes in early + late)
    for rank in range(widths):
        a, b = (max(s[rank] for s in part if len(s) == widths) / 1024 for part in (early, late))
        print(
            f"process {rank}: peak {a:.0f} MiB in files 51-100, {b:.0f} MiB in the last 50 ({b / a - 1:+.1%})"
        )
    return out


def _disturbed(batch: Path, out: Path, rng: random.Random, kills: int) -> None:
    """Kill and start again `kills` times, then let it finish."""
    codes: list[int] = []
    for _ in range(kills):
        process = _start(batch, out)
        time.sleep(rng.uniform(0.5, 12))
        process.send_signal(rng.choice((signal.SIGKILL, signal.SIGINT)))
        codes.append(process.wait())
    last = _start(batch, out).wait()
    print(f"killed: exits {sorted(set(codes))}, then {last}")
    leftovers = [path.name for path in out.iterdir() if path.suffix not in {".json", ".srt"}]
    print(f"left behind: {leftovers or 'nothing'}")


def _compare(reference: Path, out: Path) -> None:
    expected = {path.name: path.read_bytes() for path in reference.iterdir()}
    found = {path.name: path.read_bytes() for path in out.iterdir()}
    missing, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
    differing = [name for name in expected.keys() & found.keys() if expected[name] != found[name]]
    print(
        f"outputs: {len(found)} of {len(expected)}, missing {len(missing)}, extra {len(extra)}, "
        f"differing {len(differing)} {differing[:3]}"
    )
    if missing or extra or differing:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
