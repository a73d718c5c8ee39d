"""Tokens per target pass when the draft is complete before decoding starts, by number of candidates.

    python tools/measure/draft_quality.py FOLDER... [--language en] [--longer-than 20]

The ceiling of what a drafter can give a target on this audio, whatever the timing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from alone import draft_of, load_pair
from clips import read_clips

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, decode
from as2d_cli.decoding.protocols import Drafter, Target
from as2d_cli.domain.types import Features, Request

BUDGETS = (0, 2, 4, 7, 15, 23)


def main() -> None:
    arguments = _arguments()
    target, drafter = load_pair(arguments.target, arguments.drafter, arguments.threads)
    request = Request(language=arguments.language)
    totals = dict.fromkeys(BUDGETS, (0, 0))
    windows = 0
    for clip in read_clips(arguments.folders):
        if clip.language != arguments.language:
            continue
        parts = list(split(open_audio(clip.path).blocks()))
        if sum(part.duration_s for part in parts) <= arguments.longer_than:
            continue
        for part in parts:
            windows += 1
            features = log_mel(part.samples, target.spec.features)
            for budget, (tokens, steps) in _window(target, drafter, features, request).items():
                totals[budget] = (totals[budget][0] + tokens, totals[budget][1] + steps)
    print(f"{windows} windows, {totals[0][0]} tokens")
    for budget, (tokens, steps) in totals.items():
        print(f"K = {budget:2}: {tokens / steps:5.2f} tokens per step")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--target", default="whisper-base")
    parser.add_argument("--drafter", default="whisper-tiny.en")
    parser.add_argument("--language", default="en")
    parser.add_argument("--longer-than", type=float, default=20.0, help="seconds; shorter clips are left out")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def _window(
    target: Target, drafter: Drafter, features: Features, request: Request
) -> dict[int, tuple[int, int]]:
    """Tokens and steps by budget; raises if a budget changes the text."""
    draft = draft_of(target, drafter, features, request)
    session = target.open(features, request)
    opened = session.length
    found, texts = {}, set()
    for budget in BUDGETS:
        session.rollback(opened)
        reader = draft if budget else EMPTY
        steps = list(decode(session, reader, Aligner(), FixedBudget(budget), end_id=target.spec.end_id))
        tokens = tuple(token for step in steps for token in step.tokens)
        texts.add(tokens)
        found[budget] = (len(tokens), len(steps))
    if len(texts) != 1:
        raise SystemExit(f"budgets disagree: {texts}")
    return found


if __name__ == "__main__":
    main()
