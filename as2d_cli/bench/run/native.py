"""Recorded windows decoded natively with models that are all shape: real processes, passes and waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from as2d_cli.bench.acceptance import Acceptance
from as2d_cli.bench.projection import NativeLap, Projected
from as2d_cli.bench.run.recital import reciting, request_of
from as2d_cli.domain.errors import DecodeError, RequestError
from as2d_cli.domain.types import SAMPLE_RATE_HZ, WINDOW_S, Window, WindowResult
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.measure import PairCosts
from as2d_cli.engine.messages import DecodeSettings, ModelRef
from as2d_cli.engine.scheduler import WindowTask

LAPS = 5
_LAP_S = 20.0
"""What a lap of the plain way may take; with fewer seconds, it has more windows."""


def run_natively(
    target: ModelRef,
    drafter: ModelRef,
    way: Projected,
    costs: PairCosts,
    acceptance: Acceptance,
    note: Callable[[str], None],
) -> list[NativeLap]:
    """Decode the same windows plainly on all threads and the given `way`, in turn, five laps.

    Both engines are loaded at once. Raises `ModelError`; `RequestError` for models that open only a part of
    a window, `DecodeError` if a text is not the recorded one.
    """
    plain, drafter = (replace(model, entry=reciting(model.entry)) for model in (target, drafter))
    decode = DecodeSettings(cap=way.cap, idle_ms=costs.target.step_ms(), busy_ms=costs.target_busy.step_ms())
    drafted = EngineSettings(replace(plain, threads=way.threads), drafter, decode)
    with Engine(EngineSettings(plain, None), note=note) as alone, Engine(drafted, note=note) as pair:
        if alone.target_spec.features.flaw(WINDOW_S):
            raise RequestError(f"{target.entry.name} opens only a part of a window", "leave out --native")
        first_s = _lap_s(alone, acceptance, 1)
        count = max(1, min(len(acceptance.windows), round(_LAP_S / first_s)))
        _lap_s(pair, acceptance, 1)
        laps = []
        for lap in range(LAPS):
            plain_s = _lap_s(alone, acceptance, count)
            drafted_s = _lap_s(pair, acceptance, count)
            note(f"lap {lap + 1} of {LAPS}: {plain_s:.1f} s plainly, {drafted_s:.1f} s drafted")
            laps.append(NativeLap(count, plain_s, drafted_s))
    return laps


def _lap_s(engine: Engine, acceptance: Acceptance, count: int) -> float:
    """Return the seconds that the first `count` windows took. Raises `DecodeError` for another text."""
    began = time.perf_counter()
    results = decode_windows(engine, acceptance, count)
    took_s = time.perf_counter() - began
    if [result.tokens for result in results] != [window.tokens for window in acceptance.windows[:count]]:
        raise DecodeError("a recorded window gave another text than was recorded")
    return took_s


def decode_windows(engine: Engine, acceptance: Acceptance, count: int) -> list[WindowResult]:
    """Decode the first `count` windows by models that recite. Raises as the models do."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(round(WINDOW_S * SAMPLE_RATE_HZ), dtype=np.float32)
    tasks = [
        WindowTask(number, Window(0, 0, noise[: round(window.audio_s * SAMPLE_RATE_HZ)]), request_of(number))
        for number, window in enumerate(acceptance.windows[:count])
    ]
    results = []
    for outcome in engine.run(tasks, drafted=engine.is_drafting):
        if outcome.result is None:
            raise outcome.error or DecodeError("a recorded window was not decoded")
        results.append(outcome.result)
    return results
