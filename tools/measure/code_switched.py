"""Makes recordings that change their language, and counts the words that are lost of them.

    python tools/measure/code_switched.py ~/speech/multilingual ~/switched --count 16
    as2d transcribe ~/switched -f json -o ~/out
    python tools/measure/code_switched.py ~/speech/multilingual ~/switched --score ~/out

Each file joins two clips of different languages from a folder with a `manifest.jsonl` (`file`, `text`,
`lang`). Words are lost where the text has at least `RUN` words fewer than were said between two that agree.
`--score` also counts the segments whose language is neither of the two.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples

RUN = 4
"""Words missing in a row that are a part of a sentence, not errors of hearing."""
SEED = 17
_LANGUAGES = frozenset({"de", "es", "fr", "pt"})
_PAUSES_S = (0.3, 0.7, 1.5)


def main() -> None:
    """Make the files, or score what was made of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("clips", type=Path, help="folder of clips with a manifest.jsonl")
    parser.add_argument("folder", type=Path, help="folder of the joined files")
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--score", type=Path, help="folder of JSON transcripts to score")
    given = parser.parse_args()
    if given.score:
        score(given.folder, given.score)
    else:
        make(given.clips, given.folder, given.count)


def make(clips: Path, folder: Path, count: int) -> None:
    """Write `count` files, each of two clips, and their manifest."""
    draw = random.Random(SEED)
    known = [clip for clip in _manifest(clips) if clip["lang"] in _LANGUAGES and "fleurs-" in clip["file"]]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest:
        for number in range(count):
            first = draw.choice(known)
            second = draw.choice([clip for clip in known if clip["lang"] != first["lang"]])
            pause = np.zeros(int(draw.choice(_PAUSES_S) * SAMPLE_RATE_HZ), np.float32)
            parts = [_samples(clips / first["file"]), pause, _samples(clips / second["file"])]
            name = f"switched_{number:02d}_{first['lang']}_{second['lang']}.flac"
            soundfile.write(folder / name, np.concatenate(parts), SAMPLE_RATE_HZ)
            spoken = [{"lang": clip["lang"], "text": clip["text"]} for clip in (first, second)]
            manifest.write(json.dumps({"file": name, "parts": spoken}, ensure_ascii=False) + "\n")


def score(folder: Path, transcripts: Path) -> None:
    """Print lost words and wrong languages of each file, and their sums."""
    sums = [0, 0, 0]
    for entry in _manifest(folder):
        found = json.loads((transcripts / entry["file"]).with_suffix(".json").read_text(encoding="utf-8"))
        said = _words(" ".join(part["text"] for part in entry["parts"]))
        languages = {part["lang"] for part in entry["parts"]}
        lost = sum(_lost(said, _words(found["text"])))
        wrong = sum(segment.get("language") not in languages for segment in found["segments"])
        sums = [total + one for total, one in zip(sums, (len(said), lost, wrong), strict=True)]
        print(f"{entry['file']}: {lost} of {len(said)} words lost, {wrong} segments in another language")
    print(f"all: {sums[1]} of {sums[0]} words lost, {sums[2]} segments in another language")


def _lost(said: Sequence[str], found: Sequence[str]) -> Iterator[int]:
    """Yield the lengths of runs of words that were said and not found."""
    blocks = SequenceMatcher(None, said, found, autojunk=False).get_matching_blocks()
    ends = [(0, 0), *((block.a + block.size, block.b + block.size) for block in blocks)]
    begins = [(block.a, block.b) for block in blocks]
    for (said_to, found_to), (said_from, found_from) in zip(ends, begins, strict=False):
        missing = (said_from - said_to) - (found_from - found_to)
        if missing >= RUN:
            yield missing


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return re.findall(r"\w+", plain)


def _manifest(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _samples(path: Path) -> Samples:
    with open_audio(path) as audio:
        return np.concatenate(list(audio.blocks()))


if __name__ == "__main__":
    main()
