"""Times a pair at work: each model alone, then both at once, for every way to share out the threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn, TypeVar

from as2d_cli.domain.errors import MeasurementError, ModelError
from as2d_cli.engine.engine import Engine
from as2d_cli.engine.measure import DraftCosts, PairCosts, TargetCosts
from as2d_cli.engine.messages import Failed, Measure, Measured
from as2d_cli.engine.pair import Pair
from as2d_cli.engine.processes import PATIENCE_S, DrafterProcess, WorkerHandle
from as2d_cli.profile import trust
from as2d_cli.profile.machine_load import LoadWatch

T = TypeVar("T")

_ALONE_S, _TOGETHER_S = 1.0, 2.0
"""How long measuring takes, at least: each model alone, then both."""
_PATIENCE, _LEAST_PATIENCE_S = 4.0, 60.0
"""How long a drafter may take for its three windows or so before it is held to hang: a multiple of what the
target, the larger model, took to be measured, and not less than so many seconds."""
_REPEATS_S = 9.0
"""How long stages that were disturbed may be repeated, in all: a measurement is to end within 30 s."""
_END_S = 5.0
_ONCE = Measure(0.0, rounds=1)


@dataclass(frozen=True, slots=True)
class _Drafter:
    """The drafter to be measured, and what it took alone."""

    worker: WorkerHandle
    patience_s: float
    alone: DraftCosts


class _Stages:
    """Runs the stages of a measurement, watches for disturbances, and repeats what was disturbed once.

    Nothing is repeated once a stage stays disturbed, or for longer than `_REPEATS_S` in all.
    """

    def __init__(self, pair: Pair, on_flaw: Callable[[str], None]) -> None:
        self._pair = pair
        self._on_flaw = on_flaw
        self._left_s = _REPEATS_S

    def run(self, stage: Callable[[], T], judge: Callable[[T], str | None] = lambda _: None) -> T:
        """Return the costs of a stage; `judge` may find a flaw in them by themselves."""
        began = time.monotonic()
        costs, flaw = self._watched(stage, judge)
        took_s = time.monotonic() - began
        if flaw is not None and took_s <= self._left_s:
            self._left_s -= took_s
            costs, flaw = self._watched(stage, judge)
        if flaw is not None:
            self._left_s = 0.0
            self._on_flaw(flaw)
        return costs

    def _watched(self, stage: Callable[[], T], judge: Callable[[T], str | None]) -> tuple[T, str | None]:
        workers = [process.worker for process in (self._pair.target, self._pair.drafter) if process]
        watch = LoadWatch(worker.process.pid for worker in workers if worker.process.pid)
        costs = stage()
        return costs, trust.load_flaw(watch.load()) or judge(costs)


def refuse(flaw: str) -> NoReturn:
    """Raise `MeasurementError`: figures with this flaw are of no use."""
    raise MeasurementError(f"{flaw}: nothing was stored", "try again when the machine is quiet")


def measure_pair(engine: Engine, on_flaw: Callable[[str], None] = refuse) -> tuple[PairCosts, ...]:
    """Time both models, each alone and both at once, by threads of the target's passes: about 20 s.

    All of the target's threads come first; it is left with those that were measured last. Nothing may be in
    work. `on_flaw` is told why figures cannot be trusted, as soon as that is known. Raises `ModelError` if
    there is no drafter, a process ends meanwhile, or the drafter's hangs.
    """
    pair = engine.pair
    if pair.drafter is None:
        raise ModelError("there is no drafter to measure, or it takes no time worth measuring")
    try:
        costs = _measured(pair, pair.drafter, _Stages(pair, on_flaw))
    except ModelError:
        if not pair.target.worker.process.is_alive():  # no window is to fail for that
            pair.restart_target()
        raise
    if flaw := trust.costs_flaw(costs):
        on_flaw(flaw)
    return costs


def _measured(pair: Pair, process: DrafterProcess, stages: _Stages) -> tuple[PairCosts, ...]:
    began = time.monotonic()
    alone = stages.run(lambda: _target_costs(pair, Measure(_ALONE_S)), trust.target_flaw)
    patience_s = max(_LEAST_PATIENCE_S, _PATIENCE * (time.monotonic() - began))
    drafter_alone = stages.run(lambda: _draft_costs(process.worker, Measure(_ALONE_S), patience_s))
    drafter = _Drafter(process.worker, patience_s, drafter_alone)
    together = Measure(_TOGETHER_S, rounds=1, warm=True)
    costs = [stages.run(lambda: _pair_costs(pair, drafter, alone, together))]
    left = pair.target.threads - process.threads if pair.target_spec.splits_threads else 0
    if left > 0:  # passes can leave the drafter's cores to it
        pair.restart_target(left)
        again = stages.run(
            lambda: _target_costs(pair, _ONCE),
            lambda own: trust.target_flaw(own) or trust.encoder_flaw(alone, own),
        )
        # its encoder has the threads that it had before
        fewer = replace(again, encode_ms=alone.encode_ms)
        costs.append(stages.run(lambda: _pair_costs(pair, drafter, fewer, replace(_ONCE, warm=True))))
    return tuple(costs)


def _pair_costs(pair: Pair, drafter: _Drafter, target_alone: TargetCosts, order: Measure) -> PairCosts:
    """Measure the target, which has been measured alone, while the drafter works, and the drafter, too."""
    drafter.worker.send(Measure(0.0, until_told=True))
    target_busy = _target_costs(pair, order)
    drafter_busy = _draft_costs(drafter.worker, None, drafter.patience_s)  # enough
    return PairCosts(target_alone, target_busy, drafter.alone, drafter_busy, pair.target.decode_threads)


def _target_costs(pair: Pair, order: Measure) -> TargetCosts:
    pair.target.worker.send(order)
    costs = _answer(pair.target.worker, PATIENCE_S)
    if not isinstance(costs, TargetCosts):
        raise ModelError("the target's process did not measure itself")
    return costs


def _draft_costs(worker: WorkerHandle, order: Measure | None, patience_s: float) -> DraftCosts:
    """Return what the drafter took for an order, or until now (None)."""
    worker.send(order)
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
