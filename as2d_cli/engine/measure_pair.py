"""Times a pair at work: each model alone, then both at once, for every way to share out the threads."""

from __future__ import annotations

import time
from dataclasses import replace

from as2d_cli.domain.errors import ModelError
from as2d_cli.engine.measure import DraftCosts, PairCosts, TargetCosts
from as2d_cli.engine.messages import Attach, Failed, Measure, Measured
from as2d_cli.engine.target_process import TargetProcess
from as2d_cli.engine.worker_handle import PATIENCE_S, WorkerHandle

_ALONE_S, _TOGETHER_S = 1.0, 2.0
"""How long measuring takes, at least: each model alone, then both."""
_PATIENCE, _LEAST_PATIENCE_S = 4.0, 60.0
"""How long a drafter may take for its three windows or so before it is held to hang: a multiple of what the
target, the larger model, took to be measured, and not less than so many seconds."""
_END_S = 5.0
_ONCE = Measure(0.0, rounds=1)


def rehearse(
    target: TargetProcess, drafter: WorkerHandle, drafter_threads: int, attach: Attach
) -> tuple[PairCosts, ...]:
    """Measure a pair that has nothing else to do, first with all of the target's threads in its passes.

    The target is left with the threads that were measured last. Raises `ModelError` if a process ends, or the
    drafter's does not answer.
    """
    began = time.monotonic()
    alone = _target_measured(target.worker, Measure(_ALONE_S))
    patience_s = max(_LEAST_PATIENCE_S, _PATIENCE * (time.monotonic() - began))
    drafter.send(Measure(_ALONE_S))
    drafter_alone = _draft_measured(drafter, patience_s)

    def costs(target_alone: TargetCosts, asked: Measure) -> PairCosts:
        beside = _both_measured(target.worker, drafter, asked, patience_s)
        return PairCosts(target_alone, beside[0], drafter_alone, beside[1], target.decode_threads)

    found = [costs(alone, Measure(_TOGETHER_S, rounds=1))]
    for threads in _splits(target.threads, drafter_threads)[1:]:
        target.restart(attach, threads)
        again = _target_measured(target.worker, _ONCE)
        # its encoder has the threads that it had before
        found.append(costs(replace(again, encode_ms=alone.encode_ms), _ONCE))
    return tuple(found)


def _splits(threads: int, drafter_threads: int) -> tuple[int, ...]:
    """Threads of the target's passes worth trying: all, and as many as leave the drafter's cores to it."""
    left = threads - drafter_threads
    return (threads, left) if left > 0 else (threads,)


def _both_measured(
    target: WorkerHandle, drafter: WorkerHandle, asked: Measure, patience_s: float
) -> tuple[TargetCosts, DraftCosts]:
    """Measure the target, which has been measured alone, while the drafter works, and the drafter, too."""
    drafter.send(Measure(0.0, until_told=True))
    costs = _target_measured(target, replace(asked, warm=True))
    drafter.send(None)  # enough
    return costs, _draft_measured(drafter, patience_s)


def _target_measured(worker: WorkerHandle, asked: Measure) -> TargetCosts:
    worker.send(asked)
    costs = _answer(worker, PATIENCE_S)
    if not isinstance(costs, TargetCosts):
        raise ModelError("the target's process did not measure itself")
    return costs


def _draft_measured(worker: WorkerHandle, patience_s: float) -> DraftCosts:
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
