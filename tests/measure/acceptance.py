"""Record what a target wrote and what its drafter drafted: the acceptance that `as2d bench --shape` replays.

    python tests/measure/acceptance.py FILE... -o as2d_cli/bench/acceptance.json

Windows shorter than 20 s are left out: the projection is of full ones.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from as2d_cli import plugins, weights
from as2d_cli.audio import open_audio
from as2d_cli.decoding import EMPTY, Aligner, DraftStream, FixedBudget, Retokenizer, decode, fill
from as2d_cli.decoding.protocols import Drafter, Target
from as2d_cli.features import log_mel
from as2d_cli.registry import load_registry
from as2d_cli.slots import DRAFT_CAPACITY
from as2d_cli.types import Request, Window
from as2d_cli.windows import split

LEAST_S = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", dest="output", type=Path, required=True)
    parser.add_argument("--pair", default=None)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    registry = load_registry()
    pair = registry.pair(arguments.pair)
    entries = [registry.model(name) for name in (pair.target, pair.drafter)]
    paths = [weights.ensure(entry) for entry in entries]
    target = plugins.load_target(entries[0], paths[0], arguments.threads)
    drafter = plugins.load_drafter(entries[1], paths[1], arguments.threads)
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
    request, spec = Request(language="en"), target.spec
    session = target.open(log_mel(part.samples, spec.features), request)
    steps = decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=spec.end_id)
    tokens = [int(token) for step in steps for token in step.tokens]
    stream = DraftStream(bytearray(DraftStream.bytes_needed(DRAFT_CAPACITY)), DRAFT_CAPACITY)
    stream.reset(1)
    retokenizer = Retokenizer(drafter.tokenizer, target.tokenizer, spec.vocab_size)
    drafted = drafter.draft(log_mel(part.samples, drafter.spec.features), request)
    fill(stream.writer(1), drafted, retokenizer, end_id=spec.end_id)
    reader = stream.reader(1, spec.vocab_size)
    return {"tokens": tokens, "draft": list(map(int, reader.ids(0, reader.snapshot())))}


if __name__ == "__main__":
    main()
