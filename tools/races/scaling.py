"""How time and memory of `as2d transcribe` grow with the number of files and with their length.

Files are cut from the clips of the given folders: many short ones, or one long one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil
import soundfile

from as2d_cli.audio.stream import open_audio
from as2d_cli.bench.run.clips import Clip
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples

_CUT_S = 4
_SAMPLED_S = 0.1


@dataclass(frozen=True, slots=True)
class Size:
    """A run of `files` files of `seconds` each; `wall_s` is without loading."""

    files: int
    seconds: float
    wall_s: float
    peak_bytes: int


def by_files(clips: Sequence[Clip], counts: Sequence[int], options: Sequence[str]) -> Iterator[str]:
    """Yield a table over the number of files, each of 4 s."""
    sizes = [_measured(clips, count, _CUT_S, options) for count in counts]
    yield from _table(sizes, [size.files for size in sizes], "file")


def by_length(clips: Sequence[Clip], minutes: Sequence[int], options: Sequence[str]) -> Iterator[str]:
    """Yield a table over the length of one file."""
    sizes = [_measured(clips, 1, 60 * count, options) for count in minutes]
    yield from _table(sizes, minutes, "minute")


def _measured(clips: Sequence[Clip], count: int, seconds: int, options: Sequence[str]) -> Size:
    with TemporaryDirectory() as folder:
        inputs = Path(folder) / "in"
        inputs.mkdir()
        for number, samples in enumerate(islice(_cuts(clips, seconds), count)):
            soundfile.write(inputs / f"{number:04}.wav", samples, SAMPLE_RATE_HZ)
        arguments = ["transcribe", str(inputs), "-o", str(Path(folder) / "out"), "-f", "srt", "--no-progress"]
        command = [
            str(Path(sys.executable).with_name("as2d")),
            *arguments,
            "--drafter",
            "none",
            "--json",
            *options,
        ]
        with (Path(folder) / "report").open("w+") as output:
            process = subprocess.Popen(command, stdout=output, stdin=subprocess.DEVNULL)
            peak_bytes = _peak_while_running(process)
            output.seek(0)
            report = json.loads(output.readlines()[-1])["report"]
    return Size(count, seconds, report["wall_s"], peak_bytes)


def _cuts(clips: Sequence[Clip], seconds: int) -> Iterator[Samples]:
    """Yield pieces of all the speech, over and over."""
    blocks = (block for clip in cycle(clips) for block in open_audio(clip.path).blocks())
    held: Samples = np.zeros(0, np.float32)
    length = seconds * SAMPLE_RATE_HZ
    while True:
        while len(held) < length:
            held = np.concatenate([held, next(blocks)])
        yield held[:length]
        held = held[length:]


def _peak_while_running(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end; return the largest sum of the resident sizes of all processes seen meanwhile."""
    peak_bytes = 0
    root = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            family = (root, *root.children(recursive=True))
            peak_bytes = max(peak_bytes, sum(one.memory_info().rss for one in family))
        except psutil.NoSuchProcess:  # ended in between
            continue
        time.sleep(_SAMPLED_S)
    return peak_bytes


def _table(sizes: Sequence[Size], counts: Sequence[int], unit: str) -> Iterator[str]:
    slope, start = np.polyfit(counts, [size.wall_s for size in sizes], 1)
    yield f"| {unit}s | audio s | wall s | s per {unit} | off the line | peak MB |"
    yield "| --: | --: | --: | --: | --: | --: |"
    for size, count in zip(sizes, counts, strict=True):
        off = size.wall_s / (start + slope * count) - 1
        figures = f"{size.wall_s:.1f} | {size.wall_s / count:.3f} | {off:+.1%} | {size.peak_bytes / 1e6:.0f}"
        yield f"| {count} | {size.files * size.seconds:.0f} | {figures} |"
    yield f"slope {slope:.4f} s per {unit}, load average {os.getloadavg()[0]:.1f}"
