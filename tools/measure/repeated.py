"""Write files of speech that begin and end alike, as episodes of a series do, for measuring `lookup`.

    python tools/measure/repeated.py FOLDER OUTPUT [--files 10]

Each file is the same introduction, a part of its own and the same closing words, made of the clips in FOLDER.
"""

from __future__ import annotations

import argparse
from itertools import cycle
from pathlib import Path

import numpy as np
import soundfile
from clips import read_clips

from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples

_PAUSE = np.zeros(SAMPLE_RATE_HZ * 2 // 5, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--frame-s", type=float, default=10.0, help="introduction and closing words, each")
    parser.add_argument("--own-s", type=float, default=20.0, help="at least so much of its own")
    arguments = parser.parse_args()
    clips = cycle([_read(clip.path) for clip in read_clips([arguments.folder]) if clip.language == "en"])
    opening, closing = (_joined(clips, arguments.frame_s) for _ in range(2))
    arguments.output.mkdir(parents=True, exist_ok=True)
    for number in range(arguments.files):
        own = _joined(clips, arguments.own_s)
        # a little noise: no two files have the same samples anywhere
        samples = np.concatenate([opening, own, closing])
        samples += np.random.default_rng(number).normal(0, 1e-4, len(samples)).astype(np.float32)
        soundfile.write(arguments.output / f"episode-{number:02}.wav", samples, SAMPLE_RATE_HZ)


def _read(path: Path) -> Samples:
    return np.concatenate(list(open_audio(path).blocks()))


def _joined(clips: cycle[Samples], seconds: float) -> Samples:
    parts: list[Samples] = []
    while sum(map(len, parts)) < seconds * SAMPLE_RATE_HZ:
        parts += [next(clips), _PAUSE]
    return np.concatenate(parts)


if __name__ == "__main__":
    main()
