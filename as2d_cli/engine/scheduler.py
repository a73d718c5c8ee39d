"""One run of windows through a pair of processes: which window goes where, and what becomes of it.

A target that dies fails the window in work and is started again. A drafter that dies costs only
speed: windows are decoded without it until it is back, or for good after a few deaths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Protocol

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.decoding import DraftReader
from as2d_cli.domain.errors import As2dError, DecodeError
from as2d_cli.domain.types import DecodeStats, Request, Window, WindowResult
from as2d_cli.engine.messages import DecodeSettings, Done, Failed, ForgetJobs, Job, Message, Note, Progress
from as2d_cli.engine.pair import SLOTS, Pair
from as2d_cli.engine.processes import DrafterProcess
from as2d_cli.engine.rescue.care import Care


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
    care: Care | None = None
    """What is done about its text if that is doubtful; None: nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowOutcome:
    """What became of a task: a result, or the error that it failed with."""

    task: WindowTask
    result: WindowResult | None
    error: As2dError | None = None


class Guard(Protocol):
    """Decides, from window to window, whether drafts are worth their time; see `profile.guard`."""

    def should_draft(self) -> bool:
        """Tell whether the window that is handed out next is to be drafted."""

    def observe(self, stats: DecodeStats, *, drafted: bool, audio_s: float) -> bool:
        """Note what a window with so much audio took; tell whether drafting ends with it."""


@dataclass(slots=True)
class Ledger:
    """What one run of a pair leaves to the next."""

    epoch: int = 0
    """The last one given to a window: in a slot, none may come twice."""
    languages: dict[int, str] = field(default_factory=dict)
    """Of each group, what its first decoded window was found to be in."""
    decode: DecodeSettings | None = None
    """How to decode windows whose task does not say; None: as the target's process was started."""

    def request(self, task: WindowTask) -> Request:
        """Return the request in the language found in the file's first window, however it is run again."""
        return task.request.in_language(task.request.language or self.languages.get(task.group))


@dataclass(frozen=True, slots=True, eq=False)
class _InWork:
    """A task that was taken, and whose outcome has not been yielded."""

    task: WindowTask
    job: Job | None
    """What the processes were handed; None: the result is known without them."""


class Scheduler:
    """One run: at most `SLOTS` tasks are in work. The target is at the first of them, drafts run ahead."""

    def __init__(
        self, pair: Pair, ledger: Ledger, tell: Callable[[Progress | Note], None], guard: Guard | None = None
    ) -> None:
        """Run windows through `pair`; `tell` takes what the target says while it decodes."""
        self._pair = pair
        self._ledger = ledger
        self._tell = tell
        self._guard = guard
        self._in_work: deque[_InWork] = deque()
        self._free_slots = deque(range(SLOTS))
        self._awaiting_draft: deque[Job] = deque()  # windows behind an undrafted one

    def run(self, tasks: Iterable[WindowTask], *, drafted: bool) -> Iterator[WindowOutcome]:
        """Yield one outcome per task, in order. Raises `ModelError` if the target cannot be kept alive."""
        try:
            yield from self._outcomes(iter(tasks), drafted=drafted)
        finally:
            self._abandon()

    def _outcomes(self, tasks: Iterator[WindowTask], *, drafted: bool) -> Iterator[WindowOutcome]:
        while True:
            for task in islice(tasks, SLOTS - len(self._in_work)):
                self._in_work.append(_InWork(task, self._hand_out(task, drafted)))
            if not self._in_work:
                return
            outcome = self._next_outcome()
            job = self._in_work.popleft().job
            if job is not None:
                self._free_slots.append(job.slot)
                self._consult_guard(job, outcome)
                self._ask_for_drafts()
            yield outcome

    def _abandon(self) -> None:
        """Have the processes forget what is still in work: whoever ran it has gone."""
        jobs = self._jobs()
        if jobs and self._pair.is_running:
            for job in jobs:
                self._draft_of(job).cancel()
            self._pair.target.worker.send(ForgetJobs())

    def _hand_out(self, task: WindowTask, drafted: bool) -> Job | None:
        """Give a window to the processes, unless its result is known."""
        if task.known_result is not None:
            return None
        wants_draft = drafted and (self._guard is None or self._guard.should_draft())
        pair, slot, request = self._pair, self._free_slots.popleft(), self._ledger.request(task)
        self._ledger.epoch += 1
        job = Job(
            id=self._ledger.epoch,
            slot=slot,
            epoch=self._ledger.epoch,
            request=request,
            duration_s=task.window.duration_s,
            group=task.group,
            drafted=wants_draft and pair.can_draft(request),
            decode=task.decode or self._ledger.decode,
            traced=task.traced,
            index=task.window.index,
            care=task.care,
            n_samples=len(task.window.samples),
        )
        pair.slots.stream(slot).reset(job.epoch)
        for spec in pair.slots.layout.specs if job.drafted else (pair.target_spec.features,):
            pair.slots.put(slot, spec, log_mel(task.window.samples, spec))
        if job.care is not None:
            pair.slots.put_samples(slot, task.window.samples)
        if job.drafted:
            self._awaiting_draft.append(job)
            self._ask_for_drafts(job)
        if self._guard is not None and not self._jobs():
            pair.fit_threads(with_drafts=pair.drafter is not None and job.drafted)
        pair.target.worker.send(job)
        return job

    def _ask_for_drafts(self, newest: Job | None = None) -> None:
        """Ask for drafts up to the next undrafted window: a guard measures that, with no drafter beside it.

        `newest` is not in work yet.
        """
        jobs = [*self._jobs(), newest] if newest else self._jobs()
        undrafted = next((job.id for job in jobs if self._guard is not None and not job.drafted), None)
        while self._awaiting_draft and (undrafted is None or self._awaiting_draft[0].id < undrafted):
            job = self._awaiting_draft.popleft()
            if self._pair.drafter is not None and self._pair.can_draft(job.request):
                self._pair.drafter.draft(job)

    def _jobs(self) -> list[Job]:
        """Return what the processes have in work, in order."""
        return [work.job for work in self._in_work if work.job is not None]

    def _consult_guard(self, job: Job, outcome: WindowOutcome) -> None:
        """Stop the drafts of windows in work if the guard says so; share out threads for the next window."""
        if self._guard is None or outcome.result is None:
            return
        jobs = self._jobs()
        if self._guard.observe(outcome.result.stats, drafted=job.drafted, audio_s=job.duration_s):
            self._awaiting_draft.clear()
            for ahead in jobs:
                self._draft_of(ahead).cancel()
        if jobs:
            with_drafts = self._pair.drafter is not None and jobs[0].drafted
            if self._pair.fit_threads(with_drafts=with_drafts):
                self._send_again(self._in_work)

    def _next_outcome(self) -> WindowOutcome:
        """Listen to both processes until the first window in work is decided, if its result is not known."""
        task, job = self._in_work[0].task, self._in_work[0].job
        if job is None:
            return WindowOutcome(task, task.known_result)
        while True:
            message = self._next_message()
            if message is None:
                return self._replace_target()
            if isinstance(message, Progress | Note):
                self._tell(message)
            elif isinstance(message, Done) and message.id == job.id and message.result is not None:
                self._pair.target.survived()
                if message.result.language:
                    self._ledger.languages.setdefault(task.group, message.result.language)
                return WindowOutcome(task, message.result)
            elif isinstance(message, Failed) and message.id == job.id:
                return WindowOutcome(task, None, message.error)

    def _next_message(self) -> Message | None:
        """Return the target's next message, None if it died; handle the drafter's in between."""
        while True:
            drafter, target = self._pair.drafter, self._pair.target.worker
            pipes: list[Connection] = [target.pipe]
            if drafter is not None:
                pipes.append(drafter.worker.pipe)
            speaking = wait(pipes)
            if drafter is not None and drafter.worker.pipe in speaking and self._pair.handle_drafter(drafter):
                self._draft_again(drafter)
            if target.pipe in speaking:
                return target.receive()

    def _draft_again(self, drafter: DrafterProcess) -> None:
        """Ask a drafter that is back after a death to draft the windows that the target is not at yet."""
        for work in islice(self._in_work, 1, None):
            job = work.job
            if job is None or not job.drafted or job in self._awaiting_draft:
                continue
            if not self._draft_of(job).state.finished:
                drafter.draft(job)

    def _draft_of(self, job: Job) -> DraftReader:
        return self._pair.slots.stream(job.slot).reader(job.epoch, self._pair.target_spec.vocab_size)

    def _replace_target(self) -> WindowOutcome:
        """Fail the window in work and give the ones after it to a new process."""
        ended = self._pair.replace_target()
        first, *later = self._in_work
        self._send_again(later)
        return WindowOutcome(first.task, None, DecodeError(f"the target's process {ended} in a window"))

    def _send_again(self, works: Iterable[_InWork]) -> None:
        for work in works:
            if work.job is not None:
                job = replace(work.job, request=self._ledger.request(work.task))
                self._pair.target.worker.send(job)
