"""Processor time that the driver of a cluster takes for each file of a run.

    python tools/races/driver.py [FEW MANY]

Runs over a FEW and over MANY files, without outputs and with two each, and gives the difference. Files are a
second of noise, the target is scripted, each run has a cluster of this machine. The driver is this process:
what Ray and the engines take beside it is not counted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile

from as2d_cli import transcribe
from as2d_cli.domain.types import SAMPLE_RATE_HZ

MODELS = """\
schema = 1
models.speaker = { plugin = "scripted", role = "target", source = { kind = "none" }, options = { words = 5 } }
"""


def main() -> None:
    """Time runs over few and many files and print the difference."""
    few, many = [int(count) for count in sys.argv[1:]] or (200, 2000)
    noise = np.random.default_rng(0).normal(0, 0.1, SAMPLE_RATE_HZ).astype(np.float32)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "models.toml").write_text(MODELS, encoding="utf-8")
        os.environ["AS2D_MODELS"] = str(folder / "models.toml")
        files = [folder / f"{number:05}.wav" for number in range(many)]
        for file in files:
            soundfile.write(file, noise, SAMPLE_RATE_HZ)
        busy_s(files[:2], ())  # pays for all imports
        for formats in ((), ("txt", "srt")):
            less, more = busy_s(files[:few], formats), busy_s(files, formats)
            each = f"{1000 * (more - less) / (many - few):.2f} ms for each file"
            print(
                f"{len(formats)} outputs: {less:.2f} s for {few}, {more:.2f} s for {many}: {each}", flush=True
            )


def busy_s(files: Sequence[Path], formats: Sequence[str]) -> float:
    """Return the processor time of a run with its cluster's start and end, seconds."""
    began = time.process_time()
    run = transcribe(
        files, model="speaker", vad=False, engine="ray", output_formats=formats, overwrite=True, threads=1
    )
    if any(outcome.transcript is None for outcome in run):
        sys.exit("not all files were transcribed")
    return time.process_time() - began


if __name__ == "__main__":
    main()
