"""Cuts all the speech in folders into short pieces, over and over: as many files as a long batch needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples


def cuts(folders: Sequence[Path], seconds: int) -> Iterator[tuple[str, Samples]]:
    """Yield the stem of the file that a piece is from, and the piece; one of a second or less is left out."""
    clips = [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix != ".jsonl"]
    for clip in cycle(clips):
        samples = np.concatenate(list(open_audio(clip).blocks()))
        for start in range(0, len(samples), seconds * SAMPLE_RATE_HZ):
            cut = samples[start : start + seconds * SAMPLE_RATE_HZ]
            if len(cut) > SAMPLE_RATE_HZ:
                yield clip.stem, cut
