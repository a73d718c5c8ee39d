"""Text and word error rate beside faster-whisper's: same model, same windows, greedy, no fallback.

    pip install ".[test]" faster-whisper
    python tools/measure/accuracy.py FOLDER... [--target whisper-base] [--compute-type float32]

Each FOLDER holds audio files and a manifest.jsonl. Windows are those of as2d; both decoders are told
the language, so that a wrong guess does not count as a wrong text.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from beside import faster_whisper_texts, target_texts
from clips import Clip, read_clips, word_error_rate

from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.domain.types import Request
from as2d_cli.models.registry import load_registry
from as2d_cli.transcripts.segments import join_texts


def main() -> None:
    arguments = _arguments()
    entry = load_registry().model(arguments.target)
    clips = list(read_clips(arguments.folders))
    windows = [list(split(open_audio(clip.path).blocks())) for clip in clips]
    requests = [Request(language=clip.language) for clip in clips]
    ours = target_texts(entry, requests, windows, arguments.threads)
    theirs = faster_whisper_texts(
        entry, requests, windows, threads=arguments.threads, compute_type=arguments.compute_type
    )
    rows = [
        {"file": clip.path.name, "window": index, "language": clip.language, "as2d": a, "faster_whisper": b}
        for clip, our_texts, their_texts in zip(clips, ours, theirs, strict=True)
        for index, (a, b) in enumerate(zip(our_texts, their_texts, strict=True))
    ]
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    equal = sum(row["as2d"].strip() == row["faster_whisper"].strip() for row in rows)
    print(f"windows with equal text: {equal} of {len(rows)} ({equal / len(rows):.1%})")
    for name, chosen in _groups(clips).items():
        scores = [
            word_error_rate([(clips[i], join_texts(texts[i])) for i in chosen]) for texts in (ours, theirs)
        ]
        print(f"{name:28} {len(chosen):4} clips   as2d {scores[0]:7.2%}   faster-whisper {scores[1]:7.2%}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--target", default="whisper-base")
    parser.add_argument("--compute-type", default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the texts of each window here (JSON lines)")
    return parser.parse_args()


def _groups(clips: list[Clip]) -> dict[str, list[int]]:
    everything = range(len(clips))
    groups = {
        "all": list(everything),
        "strict": [i for i in everything if clips[i].strict],
        "strict, English": [i for i in everything if clips[i].strict and clips[i].language == "en"],
    }
    for folder in dict.fromkeys(clip.path.parent for clip in clips):
        groups[f"folder {folder.name}"] = [i for i in everything if clips[i].path.parent == folder]
    for language in sorted({clip.language for clip in clips}):
        groups[f"language {language}"] = [i for i in everything if clips[i].language == language]
    return {name: chosen for name, chosen in groups.items() if chosen}


if __name__ == "__main__":
    main()
