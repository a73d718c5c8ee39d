"""Times a pair at work: each model alone, then both at once, for every way to share out the threads."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from as2d_cli.domain.errors import ModelError
from as2d_cli.engine.engine import Engine
from as2d_cli.engine.measure import DraftCosts, PairCosts, TargetCosts
from as2d_cli.engine.messages import Failed, Measure, Measured
from as2d_cli.engine.pair import Pair
from as2d_cli.engine.processes import PATIENCE_S, DrafterProcess, WorkerHandle

_ALONE_S, _TOGETHER_S = 1.0, 2.0
"""How long measuring takes, at least: each model alone, then both."""
_PATIENCE, _LEAST_PATIENCE_S = 4.0, 60.0
"""How long a drafter may take for its three windows or so before it is held to hang: a multiple of what the
target, the larger model, took to be measured, and not less than so many seconds."""
_END_S = 5.0
_ONCE = Measure(0.0, rounds=1)


@dataclass(frozen=True, slots=True)
class _Drafter:
    """The drafter to be measured, and what it took alone."""

    worker: WorkerHandle
    patience_s: float
    alone: DraftCosts


def measure_pair(engine: Engine) -> tuple[PairCosts, ...]:
    """Time both models, each alone and both at once, by threads of the target's passes: under 20 s.

    All of the target's threads come first; it is left with those that were measured last. Nothing may be in
    work. Raises `ModelError` if there is no drafter, a process ends meanwhile, or the drafter's hangs.
    """
    pair = engine.pair
    if pair.drafter is None:
        raise ModelError("there is no drafter to measure, or it takes no time worth measuring")
    try:
        return _measured(pair, pair.drafter)
    except ModelError:
        if not pair.target.worker.process.is_alive():  # no window is to fail for that
            pair.restart_target()
        raise


def _measured(pair: Pair, process: DrafterProcess) -> tuple[PairCosts, ...]:
    began = time.monotonic()
    alone = _target_costs(pair.target.worker, Measure(_ALONE_S))
    patience_s = max(_LEAST_PATIENCE_S, _PATIENCE * (time.monotonic() - began))
    process.worker.send(Measure(_ALONE_S))
    drafter = _Drafter(process.worker, patience_s, _draft_costs(process.worker, patience_s))
    costs = [_pair_costs(pair, drafter, alone, Measure(_TOGETHER_S, rounds=1))]
    left = pair.target.threads - process.threads if pair.target_spec.splits_threads else 0
    if left > 0:  # passes can leave the drafter's cores to it
        pair.restart_target(left)
        again = _target_costs(pair.target.worker, _ONCE)
        # its encoder has the threads that it had before
        costs.append(_pair_costs(pair, drafter, replace(again, encode_ms=alone.encode_ms), _ONCE))
    return tuple(costs)


def _pair_costs(pair: Pair, drafter: _Drafter, target_alone: TargetCosts, order: Measure) -> PairCosts:
    """Measure the target, which has been measured alone, while the drafter works, and the drafter, too."""
    drafter.worker.send(Measure(0.0, until_told=True))
    target_busy = _target_costs(pair.target.worker, replace(order, warm=True))
    drafter.worker.send(None)  # enough
    drafter_busy = _draft_costs(drafter.worker, drafter.patience_s)
    return PairCosts(target_alone, target_busy, drafter.alone, drafter_busy, pair.target.decode_threads)


def _target_costs(worker: WorkerHandle, order: Measure) -> TargetCosts:
    worker.send(order)
    costs = _answer(worker, PATIENCE_S)
    if not isinstance(costs, TargetCosts):
        raise ModelError("the target's process did not measure itself")
    return costs


def _draft_costs(worker: WorkerHandle, patience_s: float) -> DraftCosts:
    costs = _answer(worker, patience_s)
    if not isinstance(costs, DraftCosts):
        raise ModelError("the drafter's process did not measure itself")
    return costs


def _answer(worker: WorkerHandle, patience_s: float) -> TargetCosts | DraftCosts:
    answer = worker.receive(patience_s)
    if isinstance(answer, Failed):
        worker.process.join(_END_S)  # it ends: whoever asks from now on is to find it gone
        raise ModelError(f"a model failed while it was measured: {answer.error.message}")
    if not isinstance(answer, Measured):
        raise ModelError(f"a model's process {worker.how_it_ended()} while measured", "is memory short?")
    return answer.costs
