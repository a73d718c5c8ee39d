"""What `--engine ray` adds to a batch on one node: the same run with each engine, in turns.

    python tools/races/ray_overhead.py FOLDER... [--files 200] [--laps 2] [-- OPTION...]

Transcribes as many copies of the clips in FOLDERs with OPTIONs of as2d transcribe, and compares the outputs,
too. The whole command counts, from its start to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from handed_on import parsed

_ENGINES = ("local", "ray")
_SUFFIXES = {".flac", ".mp3", ".ogg", ".opus", ".wav"}


_HEAD = """\
| lap | engine | whole command s | of it loading s | load average before |
|--:|---|--:|--:|--:|"""


def main() -> None:
    """Time both engines in turns and print a table."""
    arguments = _arguments()
    clips = sorted(
        path for folder in arguments.folders for path in folder.rglob("*") if path.suffix in _SUFFIXES
    )
    if not clips:
        sys.exit("no audio files in " + ", ".join(map(str, arguments.folders)))
    seconds: dict[str, list[float]] = {engine: [] for engine in _ENGINES}
    print(_HEAD)
    with TemporaryDirectory() as scratch:
        batch = Path(scratch) / "in"
        batch.mkdir()
        for number, clip in enumerate(islice(cycle(clips), arguments.files)):
            shutil.copy(clip, batch / f"{number:04}{clip.suffix}")
        written = []
        for lap in range(arguments.laps):
            for engine in _ENGINES[:: -1 if lap % 2 else 1]:  # neither always goes first
                load, out = os.getloadavg()[0], Path(scratch) / f"{engine}-{lap}"
                whole_s, load_s = _run(engine, batch, out, arguments.options)
                seconds[engine].append(whole_s)
                written.append({path.name: path.read_bytes() for path in out.iterdir()})
                print(f"| {lap} | {engine} | {whole_s:.1f} | {load_s:.1f} | {load:.1f} |", flush=True)
    local, ray = (min(seconds[engine]) for engine in _ENGINES)
    print(f"\nray over local, least times: {ray / local - 1:+.1%}; ", end="")
    print("outputs byte-identical" if all(one == written[0] for one in written) else "OUTPUTS DIFFER")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--laps", type=int, default=2)
    return parsed(parser)


def _run(engine: str, batch: Path, out: Path, options: list[str]) -> tuple[float, float]:
    """Return the seconds of the whole command, and of loading as its report tells them."""
    command = [str(Path(sys.executable).with_name("as2d")), "transcribe", str(batch), "-o", str(out)]
    begun = time.monotonic()
    ended = subprocess.run(
        [*command, "-f", "srt", "--no-progress", "--json", "--engine", engine, *options],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    whole_s = time.monotonic() - begun
    return whole_s, json.loads(ended.stdout.splitlines()[-1])["report"]["load_s"]


if __name__ == "__main__":
    main()
