"""What drafts are worth when a model answers from a transcript, by kind of request.

    python tools/measure/ask_drafts.py AUDIO --reader NAME --drafter NAME [--seconds 60]

The beginning of the recording is transcribed once. Each request is then answered with drafts and without,
in turn, the passage read anew each time; the tokens must be the same. Times are walls of whole answers,
reading the passage included; `answer` is without that.
"""

import argparse
from pathlib import Path

import numpy as np

from as2d_cli import transcribe
from as2d_cli.domain.types import Request, Window
from as2d_cli.engine.comparison import Compared
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import ModelRef
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.models.registry import load_registry
from as2d_cli.models.weights import ensure
from as2d_cli.system.device import usable_cpus

REQUESTS = {
    "question": "What is it about?",
    "quote": "Quote the two most important sentences word for word.",
    "clean up": "Write out the whole transcript again, with correct punctuation and without filler words.",
    "shorten": "Summarise the transcript in three sentences.",
    "translate": "Translate the transcript into French.",
}
NOTHING = Window(0, 0, np.zeros(0, np.float32))


class Kept(Compared):
    """Keeps the results of both ways."""

    def _timed(self, block, drafted):
        outcomes, seconds = super()._timed(block, drafted)
        self.kept = getattr(self, "kept", {}) | {drafted: (outcomes[0].result, seconds)}
        return outcomes, seconds


def model(name, threads):
    entry = load_registry().model(name)
    return ModelRef(entry, ensure(entry), threads)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("audio", type=Path)
    parser.add_argument("--reader", default="qwen2.5-coder-1.5b")
    parser.add_argument("--drafter", default="qwen2.5-coder-0.5b")
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    (outcome,) = transcribe(arguments.audio, drafter="none")
    heard = [one.text.strip() for one in outcome.transcript.segments if one.start_s < arguments.seconds]
    settings = EngineSettings(model(arguments.reader, usable_cpus()), model(arguments.drafter, 1))
    before = WindowTask(-1, NOTHING, Request(task="ask", question="?", passage=""))
    print(
        f"{arguments.reader} with {arguments.drafter}, {sum(map(len, heard))} characters of",
        arguments.audio.name,
    )
    print("request    tokens  per step  accepted  with s  without s  speedup  answer speedup  same")
    with Engine(settings, note=print) as engine:
        for place, (kind, question) in enumerate(REQUESTS.items()):
            both = Kept(engine, before)
            both._drafted_first = place % 2 == 0
            list(
                both.run(
                    [
                        WindowTask(
                            place, NOTHING, Request(task="ask", question=question, passage=" ".join(heard))
                        )
                    ]
                )
            )
            (ours, with_s), (plain, without_s) = both.kept[True], both.kept[False]
            answer = (plain.stats.wall_s - plain.stats.encode_s) / (ours.stats.wall_s - ours.stats.encode_s)
            stats = ours.stats
            print(
                f"{kind:10} {stats.tokens:6} {stats.tokens_per_step:9.2f} {stats.acceptance:9.0%}"
                f" {with_s:7.2f} {without_s:10.2f} {without_s / with_s:8.2f} {answer:15.2f}"
                f"  {ours.tokens == plain.tokens}  {ours.text.strip()[:60]!r}",
                flush=True,
            )


if __name__ == "__main__":
    main()
