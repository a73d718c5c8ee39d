"""Feeds windows to the target's and the drafter's process and hands back results in order.

A target that dies fails the window in work and is started again. A drafter that dies costs only
speed: windows are decoded without it until it is back, or for good after a few deaths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import Protocol

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import As2dError, DecodeError, ModelError
from as2d_cli.domain.types import DecodeStats, FeatureSpec, Request, Window, WindowResult
from as2d_cli.engine.drafter_process import DrafterProcess
from as2d_cli.engine.measure import PairCosts
from as2d_cli.engine.measure_pair import rehearse
from as2d_cli.engine.messages import (
    Attach,
    DecodeSettings,
    Done,
    Failed,
    Job,
    Message,
    ModelRef,
    Progress,
    Told,
)
from as2d_cli.engine.slots import SlotLayout, Slots
from as2d_cli.engine.target_process import TargetProcess
from as2d_cli.models import loader
from as2d_cli.system.spawning import uninterrupted

SLOTS = 4
"""Windows in work or handed out ahead: the drafter may run up to three windows ahead of the target."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowTask:
    """A window to decode. Tasks of one file share `group` and come one after another."""

    group: int
    window: Window
    request: Request
    known_result: WindowResult | None = None
    """The result, if it is known without any model; the task then only keeps its place among the others."""
    decode: DecodeSettings | None = None
    """How to decode it; None: as the engine's settings say."""
    traced: bool = False
    """Whether its time line is wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowOutcome:
    """What became of a task: a result, or the error that it failed with."""

    task: WindowTask
    result: WindowResult | None
    error: As2dError | None = None


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which models run, and how."""

    target: ModelRef
    drafter: ModelRef | None
    decode: DecodeSettings = field(default_factory=DecodeSettings)


class Guard(Protocol):
    """Decides, from window to window, whether drafts are worth their time; see `profile.guard`."""

    def should_draft(self) -> bool:
        """Tell whether the window that is handed out next is to be drafted."""

    def observe(self, stats: DecodeStats, *, drafted: bool) -> bool:
        """Note what a window took; tell whether drafting ends with it."""


class Engine:
    """A target and perhaps a drafter at work. Use as a context manager."""

    def __init__(
        self,
        settings: EngineSettings,
        *,
        note: Callable[[str], None] = lambda _: None,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        """Nothing starts before the context is entered. `note` takes warnings for the user."""
        self._settings = settings
        self._note = note
        self._progress = progress
        self._target: TargetProcess
        self._drafting_threads: int | None = None
        self._drafter: DrafterProcess | None = None
        self._inner: ModelRef | None = None  # a drafter in the target's process
        self._slots: Slots
        self._processes: list[TargetProcess | DrafterProcess] = []
        self._memory = ExitStack()  # gives it back
        self._epoch = 0
        self._languages: dict[int, str] = {}  # by group, as its first decoded window has it
        self._decode: DecodeSettings | None = None

    def __enter__(self) -> Engine:
        """Load both models side by side. Raises `ModelError` or `PluginError` if that fails."""
        try:
            self._start()
        except BaseException:
            self.close(at_once=True)
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stop both processes and free the shared memory."""
        self.close(at_once=error is not None)

    def close(self, *, at_once: bool = False) -> None:
        """Stop everything; safe to call twice."""
        with uninterrupted():  # what is half stopped could not be stopped any more
            for process in self._processes:
                process.worker.kill() if at_once else process.worker.stop()
            self._processes.clear()
            self._drafter = None
            self._memory.close()

    @property
    def target_spec(self) -> TargetSpec:
        """Facts about the loaded target."""
        return self._target_spec

    @property
    def features(self) -> tuple[FeatureSpec, FeatureSpec]:
        """What the target hears of a window, and what the drafter does (the same if there is none)."""
        layout = self._slots.layout
        return layout.target, layout.drafter or layout.target

    @property
    def is_drafting(self) -> bool:
        """Whether there is a drafter, and it has not been given up."""
        return self._drafter is not None or self._inner is not None

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes at work: the target's, then the drafter's if there is one."""
        workers = [process.worker for process in (self._target, self._drafter) if process]
        return tuple(worker.process.pid for worker in workers if worker.process.pid)

    def _start(self) -> None:
        drafter = self._settings.drafter
        if drafter is not None and loader.drafts_inside(drafter.entry):
            self._inner, drafter = drafter, None
        self._target = TargetProcess(self._settings.target, self._settings.decode, self._inner)
        self._processes.append(self._target)
        self._drafting_threads = self._target.decode_threads
        if drafter is not None:
            self._drafter = DrafterProcess(drafter, self._settings.target, self._note)
            self._processes.append(self._drafter)
        ready = self._target.await_ready()
        self._target_spec = ready.spec
        if ready.without_drafter is not None:
            self._note(f"going on without the drafter: {ready.without_drafter.with_hint}")
            self._inner = None
        drafter_spec = self._drafter.await_spec(self._target_spec) if self._drafter else None
        if drafter_spec is None:
            self._drafter = None
        features, languages = (
            (drafter_spec.features, drafter_spec.languages) if drafter_spec else (None, None)
        )
        with uninterrupted():  # half-made memory could not be given back
            self._slots = Slots(SlotLayout(SLOTS, self._target_spec.features, features))
            self._memory.callback(self._slots.close)
            self._memory.callback(self._slots.unlink)
        self._attach = Attach(self._slots.name, self._slots.layout, languages)
        self._target.worker.send(self._attach)
        if self._drafter is not None:
            self._drafter.attach(self._attach)

    def measure(self) -> tuple[PairCosts, ...]:
        """Time both models, each alone and both at once, by threads of the target's passes: under 20 s.

        Raises `ModelError` if there is no drafter, or a process ends meanwhile.
        """
        if self._drafter is None or self._settings.drafter is None:
            raise ModelError("there is no drafter to measure, or it takes no time worth measuring")
        threads = self._settings.drafter.threads if self._target_spec.splits_threads else self._target.threads
        try:
            return rehearse(self._target, self._drafter.worker, threads, self._attach)
        except ModelError:
            if not self._target.worker.process.is_alive():  # no window is to fail for that
                self._target.restart(self._attach)
            raise

    def decode_as(self, settings: DecodeSettings) -> None:
        """Decode windows by these settings from now on, if their task has none of its own."""
        self._decode = settings

    def share_threads(self, decode_threads: int | None) -> None:
        """Run the target's passes on so many threads (None: all) while it has drafts."""
        self._drafting_threads = decode_threads or self._target.threads
        self._use_threads(self._drafting_threads, ())

    def _use_threads(self, decode_threads: int, in_work: Iterable[tuple[Job | None, WindowTask]]) -> None:
        """Give the target's passes other threads; what is in work is begun anew."""
        if decode_threads != self._target.decode_threads:
            self._target.restart(self._attach, decode_threads)
            self._send_again(in_work)

    def drop_drafter(self) -> None:
        """Go on without the drafter, with all threads, and free its memory. Nothing may be in work."""
        self._inner = None
        if self._drafter is not None:
            self._drafter.worker.kill()
            self._drafter = None
            self.share_threads(None)

    def run(
        self, tasks: Iterable[WindowTask], *, drafted: bool = True, guard: Guard | None = None
    ) -> Iterator[WindowOutcome]:
        """Decode windows; yield one outcome per task, in order.

        Tasks are taken a few ahead of the one in work. With `drafted=False` the drafter is left idle,
        which is plain target-only decoding; a `guard` decides it from window to window. Raises
        `ModelError` if the target cannot be kept alive.
        """
        source, in_work = iter(tasks), deque[tuple[Job | None, WindowTask]]()
        free = deque(range(SLOTS))
        exhausted = False
        while True:
            while len(in_work) < SLOTS and not exhausted:
                task = next(source, None)
                exhausted = task is None
                if task is not None:
                    asked = drafted and (
                        task.known_result is not None or guard is None or guard.should_draft()
                    )
                    job = None if task.known_result else self._hand_out(task, free.popleft(), asked)
                    in_work.append((job, task))
            if not in_work:
                return
            outcome = self._next_outcome(in_work)
            job, _ = in_work.popleft()
            if job is not None:
                free.append(job.slot)
                if guard is not None and outcome.result is not None:
                    stop = guard.observe(outcome.result.stats, drafted=job.drafted)
                    self._heed(in_work, stop=stop)
            yield outcome

    def _heed(self, in_work: Sequence[tuple[Job | None, WindowTask]], *, stop: bool) -> None:
        """Stop the drafts of windows in work if that is wanted, and share out threads for the next window."""
        jobs = [job for job, _ in in_work if job is not None]
        for job in jobs if stop else ():
            self._slots.stream(job.slot).reader(job.epoch, self._target_spec.vocab_size).cancel()
        if jobs:
            drafting = self._drafter is not None and jobs[0].drafted
            threads = self._drafting_threads if drafting else None
            self._use_threads(threads or self._target.threads, in_work)

    def _hand_out(self, task: WindowTask, slot: int, drafted: bool) -> Job:
        self._epoch += 1
        stream = self._slots.stream(slot)
        stream.reset(self._epoch)
        request = self._in_known_language(task)
        takes = self._inner is not None or (self._drafter and self._drafter.takes(request))
        with_draft = drafted and bool(takes)
        layout = self._slots.layout
        for spec in layout.specs if with_draft else (layout.target,):
            self._slots.put(slot, spec, log_mel(task.window.samples, spec))
        job = Job(
            self._epoch,
            slot,
            self._epoch,
            request,
            task.window.duration_s,
            task.group,
            drafted=with_draft,
            decode=task.decode or self._decode,
            traced=task.traced,
            index=task.window.index,
        )
        if with_draft and self._drafter is not None:
            self._drafter.draft(job)
        self._target.worker.send(job)
        return job

    def _in_known_language(self, task: WindowTask) -> Request:
        """Return the request in the language found in the file's first window, however it is run again."""
        return task.request.in_language(task.request.language or self._languages.get(task.group))

    def _next_outcome(self, in_work: deque[tuple[Job | None, WindowTask]]) -> WindowOutcome:
        """Listen to both processes until the first window in work is decided, if its result is not known."""
        job, task = in_work[0]
        if job is None:
            return WindowOutcome(task, task.known_result)
        while True:
            message = self._listen(in_work)
            if message is None:
                return self._replace_target(in_work)
            if isinstance(message, Progress):
                self._progress(message)
            elif isinstance(message, Told):
                self._note(message.note)
            elif isinstance(message, Done) and message.id == job.id and message.result is not None:
                self._target.survived()
                if message.result.language:
                    self._languages.setdefault(task.group, message.result.language)
                return WindowOutcome(task, message.result)
            elif isinstance(message, Failed) and message.id == job.id:
                return WindowOutcome(task, None, message.error)

    def _listen(self, in_work: deque[tuple[Job | None, WindowTask]]) -> Message | None:
        """Return the target's next message, None if it died; hear the drafter in between.

        A drafter that is back after a death is asked again for the drafts of windows not yet in work.
        """
        while True:
            pipes: list[Connection] = [self._target.worker.pipe]
            if self._drafter is not None:
                pipes.append(self._drafter.worker.pipe)
            ready = wait(pipes)
            if self._drafter is not None and self._drafter.worker.pipe in ready:
                was_attached = self._drafter.is_attached
                self._drafter = self._drafter.hear(self._attach)
                if self._drafter is not None and self._drafter.is_attached and not was_attached:
                    self._ask_again(self._drafter, [job for job, _ in list(in_work)[1:] if job])
            if self._target.worker.pipe in ready:
                return self._target.worker.receive()

    def _ask_again(self, drafter: DrafterProcess, jobs: Iterable[Job]) -> None:
        for job in jobs:
            draft = self._slots.stream(job.slot).reader(job.epoch, self._target_spec.vocab_size)
            if job.drafted and not draft.state.finished:
                drafter.draft(job)

    def _replace_target(self, in_work: deque[tuple[Job | None, WindowTask]]) -> WindowOutcome:
        """Fail the window in work and give the ones after it to a new process."""
        ended = self._target.replace_dead(self._attach)
        self._send_again(list(in_work)[1:])
        task = in_work[0][1]
        return WindowOutcome(task, None, DecodeError(f"the target's process {ended} in a window"))

    def _send_again(self, in_work: Iterable[tuple[Job | None, WindowTask]]) -> None:
        for job, task in in_work:
            if job is not None:
                self._target.worker.send(replace(job, request=self._in_known_language(task)))
