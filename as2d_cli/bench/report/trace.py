"""The time line of one AS2D run, both processes, in the format of Chrome's trace viewer and of Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from as2d_cli.bench.report.plots import shown_trials
from as2d_cli.bench.trials import Results, Trial

TARGET, DRAFTER = 1, 2
"""Process numbers in the trace."""


def trace_json(results: Results) -> str:
    """Return the trace of the last repeat of the AS2D mode that the page shows, else of target-only."""
    trials = shown_trials(results.trials) or [
        trial for trial in results.trials if trial.mode == results.trials[0].mode and trial.repeat == 0
    ]
    origin_s = min(
        trial.began_s + min(trial.draft_began_ms or 0.0, *trial.published_ms, 0.0) / 1e3 for trial in trials
    )
    events = [*_names(trials[0]), *(event for trial in trials for event in _events(trial, origin_s))]
    return json.dumps(
        {"traceEvents": events, "displayTimeUnit": "ms", "otherData": results.provenance}, allow_nan=False
    )


def _names(trial: Trial) -> Iterator[dict[str, Any]]:
    for number, name in ((TARGET, f"target ({trial.mode})"), (DRAFTER, f"drafter {trial.drafter or ''}")):
        arguments = {"name": name.strip()}
        yield {"ph": "M", "name": "process_name", "pid": number, "tid": number, "args": arguments}


def _events(trial: Trial, origin_s: float) -> Iterator[dict[str, Any]]:
    base_us = (trial.began_s - origin_s) * 1e6
    where = {"file": trial.file, "start_s": trial.start_s}
    yield _span(
        TARGET, f"window {trial.window}", base_us, trial.wall_s * 1e6, where | {"tokens": len(trial.tokens)}
    )
    yield _span(TARGET, "encode", base_us, trial.encode_s * 1e6, {})
    for step in trial.steps:
        arguments = {
            "rows": 1 + step.proposed,
            "proposed": step.proposed,
            "accepted": step.accepted,
            "committed": step.committed,
            "available": step.available,
        }
        yield _span(TARGET, "step", base_us + step.began_ms * 1e3, step.ms * 1e3, arguments)
    yield from _draft_events(trial, base_us)


def _draft_events(trial: Trial, base_us: float) -> Iterator[dict[str, Any]]:
    published: Sequence[float] = trial.published_ms
    if not published:
        return
    began = trial.draft_began_ms if trial.draft_began_ms is not None else published[0]
    arguments = {"tokens": len(published)}
    name = f"draft of window {trial.window}"
    yield _span(DRAFTER, name, base_us + began * 1e3, (published[-1] - began) * 1e3, arguments)
    for number, ms in enumerate(published):
        yield {
            "ph": "i",
            "s": "t",
            "name": "draft token",
            "pid": DRAFTER,
            "tid": DRAFTER,
            "ts": round(base_us + ms * 1e3, 3),
            "args": {"index": number, "window": trial.window},
        }


def _span(
    process: int, name: str, start_us: float, length_us: float, arguments: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": process,
        "tid": process,
        "ts": round(start_us, 3),
        "dur": round(max(length_us, 0.0), 3),
        "args": arguments,
    }
