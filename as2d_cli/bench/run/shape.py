"""What a device would gain with models that are not at hand: a projection from random weights of their shape.

The costs are measured as any pair's are. Such a model opens a part of a 30 s window only, which its
declared features say: its encoder attends in blocks and prefill is nearly all matrix products (of
attention 3 % or less at these lengths), so both are taken to grow linearly with the audio.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from as2d_cli.bench.acceptance import Acceptance
from as2d_cli.bench.projection import Projected, Projection, ShapeCosts
from as2d_cli.decoding import Controller
from as2d_cli.decoding.replay import Replay, replay
from as2d_cli.domain.types import FRAMES_PER_S, WINDOW_S
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.measure import PairCosts
from as2d_cli.engine.messages import ModelRef
from as2d_cli.profile.measure_pair import measure_pair
from as2d_cli.profile.plan import CAPS, forecast, plan_drafts, replay_costs

_LONG_S = 150.0
"""A measurement that took longer is not repeated with other threads."""
_FRAMES = FRAMES_PER_S * WINDOW_S


def measure_shape(target: ModelRef, drafter: ModelRef, note: Callable[[str], None]) -> tuple[ShapeCosts, ...]:
    """Measure a pair with all of the target's threads and, unless that took long, with one fewer.

    Raises `ModelError`.
    """
    measured = [_measure(target, drafter, note)]
    took_s = measured[0].load_s + measured[0].measure_s
    if target.threads > 1:
        if took_s < _LONG_S:
            measured.append(_measure(replace(target, threads=target.threads - 1), drafter, note))
        else:
            note(f"not measured, for that took {took_s:.0f} s: the target on {target.threads - 1} threads")
    return tuple(measured)


def _measure(target: ModelRef, drafter: ModelRef, note: Callable[[str], None]) -> ShapeCosts:
    began = time.perf_counter()
    with Engine(EngineSettings(target, drafter), note=note) as engine:
        loaded = time.perf_counter()
        costs = measure_pair(engine, lambda flaw: note(f"figures not to be compared: {flaw}"))[0]
        shares = [min(1.0, features.n_frames / _FRAMES) for features in engine.features]
    return ShapeCosts(
        PairCosts(
            replace(costs.target, encode_ms=costs.target.encode_ms / shares[0]),
            replace(costs.target_busy, encode_ms=costs.target_busy.encode_ms / shares[0]),
            replace(costs.drafter, encode_ms=costs.drafter.encode_ms / shares[1]),
            replace(costs.drafter_busy, encode_ms=costs.drafter_busy.encode_ms / shares[1]),
            costs.decode_threads,
        ),
        shares[0],
        shares[1],
        load_s=loaded - began,
        measure_s=time.perf_counter() - loaded,
    )


def project(measured: Sequence[ShapeCosts], acceptance: Acceptance) -> Projection:
    """Replay the recorded windows, each from a standing start, with every cap and split of threads."""
    plain = replays(measured[0].costs, acceptance, 0)
    ways = [_way(measured[0], 0, plain, plain)]
    for own in measured:
        ways += [_way(own, cap, replays(own.costs, acceptance, cap), plain) for cap in CAPS]
    budget = plan_drafts(forecast([own.costs for own in measured]))
    wanted = (budget.decode_threads or ways[0].threads, budget.cap)
    chosen = next(way for way in ways if (way.threads, way.cap) == wanted)
    opened, total = sum(one.encoded_ms for one in plain), sum(one.total_ms for one in plain)
    return Projection(tuple(ways), chosen, budget.reason, len(plain), opened / total)


def replays(costs: PairCosts, acceptance: Acceptance, cap: int) -> list[Replay]:
    """Replay all windows with one controller that knows the costs, as a run with a profile has it.

    A cap of 0 means no drafts.
    """
    machine = replay_costs(costs)
    controller = Controller(costs.steps(), cap=cap)
    return [replay(window, machine, controller, drafted=cap > 0) for window in acceptance.on(costs)]


def _way(own: ShapeCosts, cap: int, replays: Sequence[Replay], plain: Sequence[Replay]) -> Projected:
    total, alone = (sum(one.total_ms for one in each) for each in (replays, plain))
    decode, decode_alone = (sum(one.total_ms - one.encoded_ms for one in each) for each in (replays, plain))
    return Projected(
        threads=own.costs.decode_threads,
        cap=cap,
        window_s=total / len(replays) / 1e3,
        speedup=alone / total,
        decode_speedup=decode_alone / decode,
        slower=sum(one.total_ms > other.total_ms for one, other in zip(replays, plain, strict=True)),
        tokens_per_step=sum(len(one.tokens) for one in replays) / sum(len(one.steps) for one in replays),
    )
