"""What the best choice for every window would have been: the recorded windows, replayed with every choice.

Drafts are recorded with the drafter alone at work, which gives its own undisturbed pace; the target's
encoding time is the least of the target-only repeats; all else is from the profile of the pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.bench.report.summary import least_latency_s
from as2d_cli.bench.run.clips import BenchWindow
from as2d_cli.bench.run.costs import Splits
from as2d_cli.bench.run.oracle import (
    Choice,
    Recording,
    Setup,
    Verdict,
    catalog_times,
    hindsight,
    judge,
)
from as2d_cli.bench.trials import ReplayedChoice, Trial
from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec
from as2d_cli.decoding.replay import RecordedWindow
from as2d_cli.decoding.stream import DraftState
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Request
from as2d_cli.engine.drafter_worker import run_drafter
from as2d_cli.engine.messages import Attach, DrafterReady, Failed, Job, ModelRef
from as2d_cli.engine.processes import PATIENCE_S, WorkerHandle
from as2d_cli.engine.slots import SlotLayout, Slots
from as2d_cli.profile.plan import CAPS, DraftPlan, replay_costs


@dataclass(frozen=True, slots=True)
class RecordedDraft:
    """The draft of a window, in the target's vocabulary; times in ms since the drafter had its features."""

    tokens: tuple[int, ...]
    published_ms: tuple[float, ...]
    final: DraftState


NO_DRAFT = RecordedDraft((), (), DraftState.ENDED)


def record_drafts(
    target: ModelRef,
    drafter: ModelRef,
    spec: TargetSpec,
    windows: Sequence[BenchWindow],
    languages: Mapping[int, str | None],
) -> list[RecordedDraft]:
    """Draft every window with nothing else at work; `languages` holds what the target took each for.

    Raises `ModelError`, or what loading raised. A draft that fails is recorded as far as it went.
    """
    with _recorder(target, drafter, spec) as recorder:
        return [recorder.record(window, languages.get(window.index)) for window in windows]


@contextmanager
def _recorder(target: ModelRef, drafter: ModelRef, spec: TargetSpec) -> Iterator[_Recorder]:
    worker = WorkerHandle("recorder", run_drafter, drafter, target)
    try:
        ready = worker.receive(PATIENCE_S)
        if isinstance(ready, Failed):
            raise ready.error
        if not isinstance(ready, DrafterReady):
            raise ModelError(f"the drafter's process {worker.how_it_ended()} while loading")
        slots = Slots(SlotLayout(1, ready.spec.features, ready.spec.features))
        try:
            worker.send(spec)
            worker.send(Attach(slots.name, slots.layout))
            yield _Recorder(worker, slots, ready.spec, spec.vocab_size)
        finally:
            slots.close()
            slots.unlink()
    finally:
        worker.stop()


@dataclass(slots=True)
class _Recorder:
    """A drafter's process that drafts one window at a time."""

    worker: WorkerHandle
    slots: Slots
    spec: DrafterSpec
    vocab_size: int
    epoch: int = 0

    def record(self, window: BenchWindow, language: str | None) -> RecordedDraft:
        """Draft a window, if the drafter is of use in its language. Raises `ModelError` if it dies."""
        if self.spec.languages is not None and language not in self.spec.languages:
            return NO_DRAFT
        self.epoch += 1
        stream = self.slots.stream(0)
        stream.reset(self.epoch)
        self.slots.put(0, self.spec.features, log_mel(window.window.samples, self.spec.features))
        request, duration_s = Request(language=language), window.window.duration_s
        self.worker.send(Job(self.epoch, 0, self.epoch, request, duration_s, window.group, drafted=True))
        if self.worker.receive(PATIENCE_S) is None:
            raise ModelError(f"the drafter's process {self.worker.how_it_ended()} while recording")
        reader = stream.reader(self.epoch, self.vocab_size)
        count = reader.snapshot()
        head_ms = ((reader.begun_s or reader.origin_s) - reader.origin_s) * 1e3
        times_ms = np.maximum.accumulate(np.maximum(np.array(reader.times_ms(0, count)) - head_ms, 0.0))
        state = reader.state if reader.state.finished else DraftState.FAILED
        return RecordedDraft(tuple(reader.ids(0, count)), tuple(times_ms.tolist()), state)


def recorded_windows(
    plain: Sequence[Trial], drafts: Sequence[RecordedDraft] | None, spec: TargetSpec
) -> list[RecordedWindow]:
    """Put target-only trials and drafts together, one window each."""
    encode_s: dict[int, float] = {}
    first: dict[int, Trial] = {}
    for trial in plain:
        first.setdefault(trial.window, trial)
        encode_s[trial.window] = min(trial.encode_s, encode_s.get(trial.window, trial.encode_s))
    found = drafts if drafts is not None else [NO_DRAFT] * len(first)
    return [
        RecordedWindow(
            tokens=trial.tokens,
            end_id=spec.end_id,
            vocab_size=spec.vocab_size,
            max_tokens=trial.max_tokens,
            encode_ms=encode_s[trial.window] * 1e3,
            draft=draft.tokens,
            publish_ms=draft.published_ms,
            final=draft.final,
        )
        for trial, draft in zip(first.values(), found, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A drafter with its drafts and the costs of the pair."""

    drafts: Sequence[RecordedDraft]
    splits: Splits
    threads: int


def verdicts(
    trials: Sequence[Trial],
    recorded: Mapping[str, Recorded],
    spec: TargetSpec,
    target_threads: int,
    auto: DraftPlan,
) -> list[ReplayedChoice]:
    """Replay every window with every choice and judge them; `auto` is what the tool chose.

    Raises `DecodeError` if a replay does not give the recorded text.
    """
    plain = [trial for trial in trials if trial.kind == "plain" and trial.mode == trials[0].mode]
    first = next(iter(recorded.values())).splits[0]
    alone = replace(replay_costs(first), control_ms=_control_ms(trials, None))
    choices = [Choice(Setup(None, target_threads))]
    recordings = {choices[0].setup: Recording(recorded_windows(plain, None, spec), alone)}
    for name, own in recorded.items():
        windows = recorded_windows(plain, own.drafts, spec)
        for split in own.splits:
            setup = Setup(name, split.decode_threads, own.threads)
            choices += [Choice(setup, cap) for cap in CAPS]
            costs = replace(replay_costs(split), control_ms=_control_ms(trials, name))
            recordings[setup] = Recording(windows, costs)
    times = catalog_times(choices, recordings)
    columns = {choice: number for number, choice in enumerate(choices)}
    chosen = columns[_choice(auto, recorded, choices[0])]
    best = hindsight(times)
    found = [
        _verdict(f"as2d auto: {_name(choices[chosen], target_threads)}", judge(times[:, chosen], times)),
        _verdict("oracle, per window", best.oracle),
        _verdict(f"best static: {_name(choices[best.static], target_threads)}", best.best_static),
    ]
    for number, choice in enumerate(choices):
        native = _native_ms(trials, choice) if choice.setup.target_threads == target_threads else None
        found.append(_verdict(_name(choice, target_threads), judge(times[:, number], times), native))
    return found


def _choice(auto: DraftPlan, recorded: Mapping[str, Recorded], plain: Choice) -> Choice:
    if auto.drafter is None:
        return plain
    own = recorded[auto.drafter]
    return Choice(
        Setup(auto.drafter, auto.decode_threads or plain.setup.target_threads, own.threads), auto.cap
    )


def _verdict(name: str, verdict: Verdict, native_ms: float | None = None) -> ReplayedChoice:
    return ReplayedChoice(
        name, verdict.total_ms, verdict.speedup, verdict.of_oracle, verdict.slower, native_ms
    )


def _name(choice: Choice, all_threads: int) -> str:
    drafter = choice.setup.drafter
    if drafter is None:
        return "target-only"
    shared = choice.setup.target_threads != all_threads
    return f"as2d-{choice.cap} {drafter}" + f", passes on {choice.setup.target_threads}" * shared


def _control_ms(trials: Sequence[Trial], drafter: str | None) -> float:
    """Return what the run itself took for alignment and bookkeeping, per step."""
    own = [trial for trial in trials if trial.kind in {"plain", "as2d"} and trial.drafter == drafter]
    steps = sum(len(trial.steps) for trial in own)
    return sum(trial.control_s for trial in own) * 1e3 / steps if steps else 0.0


def _native_ms(trials: Sequence[Trial], choice: Choice) -> float | None:
    """Return what the run took for windows from a standing start; None where it had none such."""
    drafter = choice.setup.drafter
    own = [
        trial
        for trial in trials
        if (trial.mode == trials[0].mode if drafter is None else trial.alone)
        and trial.drafter == drafter
        and trial.cap == choice.cap
    ]
    every = {trial.window for trial in trials}
    least = least_latency_s(own)
    return sum(least.values()) * 1e3 if least and set(least) == every else None
