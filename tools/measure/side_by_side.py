"""Time one engine on all threads and several engines side by side, on the same windows, in turn.

    python tools/measure/side_by_side.py FILE... [--model NAME] [--laps 5] [--windows 24] [--threads 2]

One engine runs twice in each lap: what the two differ by is noise. All texts must be equal.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path
from statistics import median

from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.domain.types import Request
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.measure import peak_bytes_of
from as2d_cli.engine.messages import ModelRef
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.models import weights
from as2d_cli.models.registry import load_registry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--model", default="whisper-base")
    parser.add_argument("--laps", type=int, default=5)
    parser.add_argument("--windows", type=int, default=24)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    entry, threads = load_registry().model(arguments.model), arguments.threads
    path = weights.ensure(entry)
    for file in arguments.files:
        windows = islice(split(open_audio(file).blocks()), arguments.windows)
        tasks = [WindowTask(0, window, Request()) for window in windows]
        ways = {"one": (1, threads), "one again": (1, threads), "side by side": (threads, 1)}
        laps = [
            {name: _timed(tasks, ModelRef(entry, path, each), count) for name, (count, each) in ways.items()}
            for _ in range(arguments.laps)
        ]
        if len({texts for lap in laps for _, texts, _ in lap.values()}) > 1:
            raise SystemExit(f"{file}: texts differ")
        print(f"{file.name}: {len(tasks)} windows, {arguments.laps} laps")
        for name, (count, each) in ways.items():
            ratios = [lap["one"][0] / lap[name][0] for lap in laps]
            print(
                f"  {name:12} {count} x {each}: {median(lap[name][0] for lap in laps):6.2f} s, "
                f"{median(ratios):.2f}x of one ({min(ratios):.2f} to {max(ratios):.2f}), "
                f"{max(lap[name][2] for lap in laps) / 1e6:.0f} MB"
            )


def _timed(tasks: list[WindowTask], model: ModelRef, count: int) -> tuple[float, tuple[str, ...], int]:
    """Return seconds without loading, texts, and the memory of all processes at its most."""
    with Engine(EngineSettings(model, None, pairs=count)) as engine:
        began = time.perf_counter()
        texts = tuple(outcome.result.text if outcome.result else "" for outcome in engine.run(tasks))
        took_s = time.perf_counter() - began
        return took_s, texts, sum(peak_bytes_of(process) or 0 for process in engine.process_ids)


if __name__ == "__main__":
    main()
