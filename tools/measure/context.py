"""A full and a fitted context side by side: word error rate and time of each window, one after the other.

    pip install ".[test]"
    python tools/measure/context.py FOLDER... [--model whisper-base] [--shorter-than 30]

Each FOLDER holds audio files and a manifest.jsonl. The language is given; windows are those of as2d.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from alone import tokens_of
from clips import Clip, read_clips, word_error_rate

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.decoding.protocols import Target
from as2d_cli.domain.types import Features, Request
from as2d_cli.models import loader, weights
from as2d_cli.models.registry import load_registry
from as2d_cli.transcripts.segments import join_texts
from as2d_whisper.options import CONTEXT


def main() -> None:
    arguments = _arguments()
    targets = _targets(arguments.model, arguments.threads)
    texts: dict[str, list[tuple[Clip, str]]] = {context: [] for context in targets}
    seconds = dict.fromkeys(targets, 0.0)
    audio_s, windows, equal = 0.0, 0, 0
    for clip in read_clips(arguments.folders):
        parts = list(split(open_audio(clip.path).blocks()))
        if sum(part.duration_s for part in parts) >= arguments.shorter_than:
            continue
        pieces: dict[str, list[str]] = {context: [] for context in targets}
        for part in parts:
            features = log_mel(part.samples, targets["full"].spec.features)
            audio_s, windows = audio_s + part.duration_s, windows + 1
            for context, target in targets.items():
                began = time.perf_counter()
                pieces[context].append(_text(target, features, Request(language=clip.language)))
                seconds[context] += time.perf_counter() - began
            equal += len({found[-1] for found in pieces.values()}) == 1
        for context, found in pieces.items():
            texts[context].append((clip, join_texts(found)))
    print(f"{windows} windows, {audio_s:.0f} s; {equal} texts equal")
    for context, pairs in texts.items():
        rate = f"{audio_s / seconds[context]:.1f} times real time"
        print(f"{context:8} WER {word_error_rate(pairs):7.2%}   {seconds[context]:6.1f} s, {rate}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--model", default="whisper-base")
    parser.add_argument("--shorter-than", type=float, default=float("inf"), help="seconds of a clip")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def _targets(name: str, threads: int) -> dict[str, Target]:
    entry = load_registry().model(name)
    entries = {
        context: replace(entry, options={**entry.options, "context": context}) for context in CONTEXT.choices
    }
    return {
        context: loader.load_target(one, weights.ensure(one), threads) for context, one in entries.items()
    }


def _text(target: Target, features: Features, request: Request) -> str:
    tokens = tokens_of(target, target.open(features, request))  # the end has no bytes
    return target.tokenizer.decode_bytes(tokens).decode("utf-8", "ignore")


if __name__ == "__main__":
    main()
