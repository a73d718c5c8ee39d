"""Decodes blocks of windows in a mode: through the engine, or in the processes of a baseline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Protocol, TypeVar

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.bench.baselines.drafter_process import EPOCHS, SLOTS, Followed, run_follower
from as2d_cli.bench.baselines.pair_process import PairReady, run_pair
from as2d_cli.bench.modes import Mode
from as2d_cli.domain.errors import DecodeError, ModelError, PluginError
from as2d_cli.domain.types import Features, FeatureSpec, WindowResult
from as2d_cli.engine.engine import Engine
from as2d_cli.engine.measure import peak_bytes_of
from as2d_cli.engine.messages import Attach, DecodeSettings, Done, DrafterReady, Failed, Job, ModelRef
from as2d_cli.engine.processes import PATIENCE_S, WorkerHandle
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.engine.slots import SlotLayout, Slots
from as2d_cli.profile.guard import DraftGuard

M = TypeVar("M")


@dataclass(frozen=True, slots=True, eq=False)
class DecodedBlock:
    """Results of a block, in order, and its wall time."""

    results: list[WindowResult]
    wall_s: float


class BlockDecoder(Protocol):
    """Decodes blocks of windows."""

    def decode(self, mode: Mode, tasks: Sequence[WindowTask]) -> DecodedBlock:
        """Decode `tasks` in `mode`. Raises `As2dError` if one of them cannot be decoded."""

    def process_ids(self, mode: Mode) -> tuple[int, ...]:
        """Return the processes that work for `mode`."""


class EngineDecoder:
    """Target-only and AS2D modes, through an engine that is at work already."""

    def __init__(self, engine: Engine, costs: DecodeSettings, guard: DraftGuard | None = None) -> None:
        """`costs` holds what is known of the target's passes; a `guard` may leave out drafts."""
        self._engine, self._costs, self._guard = engine, costs, guard

    def decode(self, mode: Mode, tasks: Sequence[WindowTask]) -> DecodedBlock:
        """Decode a block; alone, each window waits for the one before."""
        decode = replace(self._costs, cap=mode.cap, align=mode.align, name=mode.label)
        ready = [replace(task, decode=decode) for task in tasks]
        parts = [[task] for task in ready] if mode.alone else [ready]
        shares = mode.decode_threads is not None and not (self._guard and self._guard.is_paused)
        if shares:
            self._share_threads(mode.decode_threads, ready[0])
        began = time.perf_counter()
        results = [result for part in parts for result in self._decoded(part, mode)]
        wall_s = time.perf_counter() - began
        if shares:
            self._share_threads(None, ready[0])
        return DecodedBlock(results, wall_s)

    def _share_threads(self, decode_threads: int | None, task: WindowTask) -> None:
        """Give the target's passes other threads; a window that is not counted makes up for a cold start."""
        self._engine.share_threads(decode_threads)
        list(self._engine.run([task], drafted=False))

    def _decoded(self, tasks: Sequence[WindowTask], mode: Mode) -> Iterable[WindowResult]:
        for outcome in self._engine.run(tasks, drafted=mode.kind != "plain", guard=self._guard):
            if outcome.result is None:
                raise outcome.error or DecodeError("a window could not be decoded")
            yield outcome.result

    def process_ids(self, mode: Mode) -> tuple[int, ...]:
        """Return the target's process, and the drafter's where it drafts."""
        return self._engine.process_ids[: 1 if mode.kind == "plain" else 2]


class BaselineDecoder:
    """Serial modes and async-coupled, in processes of their own. Use as a context manager."""

    def __init__(self, target: ModelRef, drafter: ModelRef, costs: DecodeSettings, *, coupled: bool) -> None:
        """In turn with the target the drafter has all threads, too; beside it, as many as in AS2D modes."""
        self._models = (target, drafter)
        self._costs, self._coupled = costs, coupled
        self._follower: WorkerHandle | None = None
        self._stack = ExitStack()
        self._count = 0

    def __enter__(self) -> BaselineDecoder:
        """Load the models. Raises `ModelError`, `PluginError` if no window fits, or what loading raised."""
        target, drafter = self._models
        with ExitStack() as stack:
            in_turn = replace(drafter, threads=target.threads)
            self._worker = _started(stack, "baseline", run_pair, target, in_turn)
            ready = _answer(self._worker, PairReady)
            if flaw := ready.drafter.features.flaw(ready.target.features.length_s):
                raise PluginError(f"drafter {drafter.entry.name!r} cannot be used: {flaw}")
            self._slots = Slots(SlotLayout(SLOTS, ready.target.features, ready.drafter.features))
            stack.callback(self._slots.unlink)
            stack.callback(self._slots.close)
            attach = Attach(self._slots.name, self._slots.layout)
            self._worker.send(attach)
            if self._coupled:
                self._follower = _started(stack, "follower", run_follower, drafter, target)
                _answer(self._follower, DrafterReady)
                self._follower.send(ready.target)
                self._follower.send(attach)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the processes."""
        self._stack.close()

    def decode(self, mode: Mode, tasks: Sequence[WindowTask]) -> DecodedBlock:
        """Decode a block, one window after the other."""
        follower = self._follower if mode.kind == "coupled" else None
        began = time.perf_counter()
        results = list(self._decoded(tasks, replace(self._costs, name=mode.name), follower))
        wall_s = time.perf_counter() - began
        if follower is not None:  # only now: the target need not wait for a drafter that is late
            counts = [_answer(follower, Followed).published for _ in tasks]
            results = [
                replace(result, stats=replace(result.stats, drafted=count))
                for result, count in zip(results, counts, strict=True)
            ]
        return DecodedBlock(results, wall_s)

    def _decoded(
        self, tasks: Sequence[WindowTask], decode: DecodeSettings, follower: WorkerHandle | None
    ) -> Iterator[WindowResult]:
        """Decode window by window; the features of the next are made meanwhile, as in the engine."""
        features = self._features(tasks[0])
        for task, next_task in zip_longest(tasks, tasks[1:]):
            for spec, values in features.items():
                self._slots.put(0, spec, values)
            self._send(task, decode, follower)
            features = self._features(next_task) if next_task else {}
            done = _answer(self._worker, Done)
            if done.result is None:
                raise DecodeError("a baseline gave no result")
            yield done.result

    def _features(self, task: WindowTask) -> dict[FeatureSpec, Features]:
        return {spec: log_mel(task.window.samples, spec) for spec in self._slots.layout.specs}

    def _send(self, task: WindowTask, decode: DecodeSettings, follower: WorkerHandle | None) -> None:
        self._count += 1
        job = Job(
            id=self._count,
            slot=0,
            epoch=self._count * EPOCHS,
            request=task.request,
            duration_s=task.window.duration_s,
            group=task.group,
            drafted=True,
            decode=decode,
            traced=True,
        )
        if follower is not None:
            follower.send(job)
        self._worker.send(job)

    def process_ids(self, mode: Mode) -> tuple[int, ...]:
        """Return the process of both models, and the follower's where there is one."""
        workers = [self._worker, self._follower if mode.kind == "coupled" else None]
        return tuple(worker.process.pid for worker in workers if worker and worker.process.pid)


def _started(stack: ExitStack, name: str, body: Callable[..., None], *models: ModelRef) -> WorkerHandle:
    worker = WorkerHandle(name, body, *models)
    stack.callback(worker.stop)
    return worker


def _answer(worker: WorkerHandle, kind: type[M]) -> M:
    """Return the next message. Raises what it reports, or `ModelError` if the process is gone."""
    message: object = worker.receive(PATIENCE_S)
    if isinstance(message, Failed):
        raise message.error
    if not isinstance(message, kind):
        raise ModelError(f"the process of a baseline {worker.how_it_ended()}")
    return message


def summed_peak_bytes(process_ids: Iterable[int]) -> int | None:
    """Return the most memory that the processes have used, summed; None where the system does not tell."""
    total = 0
    for number in process_ids:
        peak = peak_bytes_of(number)
        if peak is None:
            return None
        total += peak
    return total
