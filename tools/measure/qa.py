"""How well models that read answer: the pairs of manifests, and questions about something else.

    python tools/measure/qa.py FOLDER... [--models smollm2-135m,qwen2.5-coder-1.5b] [--listener whisper-base]

Each FOLDER has a manifest.jsonl whose records may have `qa`: a list of {"q": ..., "a": ...}. Every recording
with such pairs is transcribed, and is asked its own questions and one of the next recording, to which the
answer ought to be that it is not there. An own answer counts as right if half of the words of the
reference are in it, or all of its words are in the reference; all are printed, for a person to judge.
"""

import argparse
import json
import re
import resource
import time
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from alone import tokens_of

from as2d_cli import transcribe
from as2d_cli.ask.retrieval import choose, is_found
from as2d_cli.domain.types import NOTHING_HEARD, Request
from as2d_cli.models import loader
from as2d_cli.models.registry import load_registry
from as2d_cli.models.weights import ensure
from as2d_cli.system.device import usable_cpus

SMALL = frozenset(
    re.findall(r"\w+", "the a an of and or in on to is are was were at it its for with by about that this")
)
CLOSE = 0.8
"""Similarity from which on words count as one: the model that listens spells names as it hears them."""


@dataclass
class Recording:
    path: Path
    pairs: list[dict[str, str]]
    segments: tuple = ()


def recordings(folders, listener):
    found = []
    for folder in folders:
        for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("qa"):
                found.append(Recording(folder / record["file"], record["qa"]))
    outcomes = transcribe([one.path for one in found], model=listener, drafter="none")
    texts = {outcome.source: outcome.transcript for outcome in outcomes}
    for one in found:
        one.segments = texts[one.path].segments
    return found


def content(text):
    return set(re.findall(r"\w+", text.casefold())) - SMALL


def shared(words, others):
    return [word for word in words if get_close_matches(word, others, 1, CLOSE)]


def is_right(answer, reference):
    mine, wanted = content(answer), content(reference)
    found = len(shared(wanted, mine)) >= 0.5 * len(wanted)
    return bool(mine) and (found or len(shared(mine, wanted)) == len(mine))


def answered(target, recording, question):
    """Return the answer, and the seconds until it was complete."""
    began = time.perf_counter()
    count = lambda text: len(target.tokenizer.encode(text))  # noqa: E731
    passage = choose(recording.segments, question, target.spec.max_passage_tokens - count(question), count)
    request = Request(task="ask", question=question, passage=passage.text)
    session = target.open(np.zeros(NOTHING_HEARD.shape, np.float32), request)
    tokens = tokens_of(target, session)
    text = target.tokenizer.decode_bytes(tokens).decode("utf-8", "ignore").strip()
    return text, time.perf_counter() - began, len(tokens)


def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(name, found):
    entry = load_registry().model(name)
    path = ensure(entry)
    began, before = time.perf_counter(), resident_mb()
    target = loader.load_target(entry, path, usable_cpus())
    print(f"\n{name}: loaded in {time.perf_counter() - began:.1f} s")
    right = refused = total = 0
    first = []
    for number, one in enumerate(found):
        other = found[(number + 1) % len(found)].pairs[0]
        for place, pair in enumerate([*one.pairs, other]):
            text, seconds, n_tokens = answered(target, one, pair["q"])
            if pair is other:
                verdict = "refused" if not is_found(text) else "INVENTED"
                refused += not is_found(text)
            else:
                total += 1
                verdict = "right" if is_right(text, pair["a"]) else "WRONG"
                right += verdict == "right"
            if place == 0:
                first.append(seconds)
            print(f"  {verdict:8} {seconds:5.1f} s {n_tokens:3} tokens  {one.path.name}: {pair['q']}")
            print(
                f"           answer {text!r}, reference {pair['a']!r}"
                if pair is not other
                else f"           answer {text!r}"
            )
    print(
        f"{name}: {right} of {total} right, {refused} of {len(found)} refused that are not there,"
        f" first answer after {np.median(first):.1f} s (median), {resident_mb() - before:.0f} MB"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--models", default="smollm2-135m,qwen2.5-coder-0.5b,qwen2.5-coder-1.5b")
    parser.add_argument("--listener", default="whisper-base")
    arguments = parser.parse_args()
    found = recordings(arguments.folders, arguments.listener)
    for name in arguments.models.split(","):
        measure(name, found)


if __name__ == "__main__":
    main()
