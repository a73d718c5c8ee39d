"""Record what a target wrote and what its drafter drafted: the acceptance that `as2d bench --shape` replays.

    python tools/measure/acceptance.py FILE... -o as2d_cli/bench/acceptance.json

Windows shorter than 20 s are left out: the projection is of full ones.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from alone import draft_of, load_pair, tokens_of

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.decoding.protocols import Drafter, Target
from as2d_cli.domain.types import Request, Window
from as2d_cli.models.registry import load_registry

LEAST_S = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", dest="output", type=Path, required=True)
    parser.add_argument("--pair", default=None)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    pair = load_registry().pair(arguments.pair)
    target, drafter = load_pair(pair.target, pair.drafter, arguments.threads)
    windows = [
        {"audio_s": round(part.duration_s, 2), **_record(target, drafter, part)}
        for file in arguments.files
        for part in split(open_audio(file).blocks())
        if part.duration_s >= LEAST_S
    ]
    recorded = {
        "target": pair.target,
        "drafter": pair.drafter,
        "audio": [file.name for file in arguments.files],
        "end_id": target.spec.end_id,
        "vocab_size": target.spec.vocab_size,
        "windows": windows,
    }
    text = json.dumps(recorded).replace('{"audio_s"', '\n{"audio_s"')  # a line for each window
    arguments.output.write_text(text + "\n", encoding="utf-8")


def _record(target: Target, drafter: Drafter, part: Window) -> dict[str, list[int]]:
    request = Request(language="en")
    session = target.open(log_mel(part.samples, target.spec.features), request)
    draft = draft_of(target, drafter, log_mel(part.samples, drafter.spec.features), request)
    return {"tokens": tokens_of(target, session), "draft": draft.ids(0, draft.snapshot())}


if __name__ == "__main__":
    main()
