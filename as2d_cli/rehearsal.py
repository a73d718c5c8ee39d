"""Times a pair at work: each model alone, then both at once, for every way to share out the threads."""

from __future__ import annotations

from dataclasses import replace

from as2d_cli.errors import ModelError
from as2d_cli.measure import DraftCosts, PairCosts, TargetCosts
from as2d_cli.messages import Attach, Failed, Measure, Measured
from as2d_cli.processes import PATIENCE_S, Worker
from as2d_cli.target_process import TargetProcess

_ALONE_S, _TOGETHER_S = 1.0, 2.0
"""How long measuring takes, at least: each model alone, then both."""
_PATIENCE_S = 60.0
"""How long a drafter may take for a few windows, the slowest of phones in mind: no run may wait longer."""
_END_S = 5.0
_ONCE = Measure(0.0, rounds=1)


def rehearse(
    target: TargetProcess, drafter: Worker, drafter_threads: int, attach: Attach
) -> tuple[PairCosts, ...]:
    """Measure a pair that has nothing else to do, first with all of the target's threads in its passes.

    The target is left with the threads that were measured last. Raises `ModelError` if a process ends.
    """
    first = _costs(
        target, drafter, _drafter_alone(drafter), (Measure(_ALONE_S), Measure(_TOGETHER_S, rounds=1))
    )
    found = [first]
    for threads in _splits(target.threads, drafter_threads)[1:]:
        target.restart(attach, threads)
        costs = _costs(target, drafter, first.drafter, (_ONCE, _ONCE))
        # its encoder has the threads that it had before
        found.append(replace(costs, target=replace(costs.target, encode_ms=first.target.encode_ms)))
    return tuple(found)


def _splits(threads: int, drafter_threads: int) -> tuple[int, ...]:
    """Threads of the target's passes worth trying: all, and as many as leave the drafter's cores to it."""
    left = threads - drafter_threads
    return (threads, left) if left > 0 else (threads,)


def _costs(
    target: TargetProcess, drafter: Worker, drafter_alone: DraftCosts, asked: tuple[Measure, Measure]
) -> PairCosts:
    alone = _target_measured(target.worker, asked[0])
    drafter.send(Measure(0.0, until_told=True))
    beside = _target_measured(target.worker, replace(asked[1], warm=True))
    drafter.send(None)  # enough
    return PairCosts(alone, beside, drafter_alone, _draft_measured(drafter), target.decode_threads)


def _drafter_alone(drafter: Worker) -> DraftCosts:
    drafter.send(Measure(_ALONE_S))
    return _draft_measured(drafter)


def _target_measured(worker: Worker, asked: Measure) -> TargetCosts:
    worker.send(asked)
    costs = _answer(worker, PATIENCE_S)
    if not isinstance(costs, TargetCosts):
        raise ModelError("the target's process did not measure itself")
    return costs


def _draft_measured(worker: Worker) -> DraftCosts:
    costs = _answer(worker, _PATIENCE_S)
    if not isinstance(costs, DraftCosts):
        raise ModelError("the drafter's process did not measure itself")
    return costs


def _answer(worker: Worker, patience_s: float) -> TargetCosts | DraftCosts:
    answer = worker.receive(patience_s)
    if isinstance(answer, Failed):
        worker.process.join(_END_S)  # it ends: whoever asks from now on is to find it gone
        raise ModelError(f"a model failed while it was measured: {answer.error.message}")
    if not isinstance(answer, Measured):
        raise ModelError(f"a model's process {worker.how_it_ended()} while measured", "is memory short?")
    return answer.costs
