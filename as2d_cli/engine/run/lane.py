"""The windows that one pair of processes has in work: the target is at the first, drafts run ahead.

A target that dies fails the window in work and is started again. A drafter that dies costs only
speed: windows are decoded without it until it is back, or for good after a few deaths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.decoding import DraftReader
from as2d_cli.domain.errors import As2dError, DecodeError
from as2d_cli.domain.types import WindowResult
from as2d_cli.engine.messages import DecodeSettings, Done, Failed, ForgetJobs, Job, Note, Progress
from as2d_cli.engine.pair import SLOTS, Pair
from as2d_cli.engine.processes import DrafterProcess
from as2d_cli.engine.run.languages import FileLanguages
from as2d_cli.engine.run.tasks import Guard, WindowOutcome, Work


class Ledger:
    """What one run of an engine leaves to the next."""

    def __init__(self, epoch: int = 0, decode: DecodeSettings | None = None) -> None:
        """Begin after `epoch`; windows whose task does not say are decoded as `decode` says."""
        self.epoch = epoch
        """The last one given to a window: in a slot, none may come twice."""
        self.decode = decode
        """None: as the target's process was started."""
        self.languages = FileLanguages()


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What all pairs of a run go by."""

    ledger: Ledger
    tell: Callable[[Progress | Note], None]
    """Takes what a target says while it decodes."""
    guard: Guard | None = None
    drafted: bool = True


class Lane:
    """One pair at work in one run."""

    def __init__(self, pair: Pair, settings: RunSettings) -> None:
        """Nothing is in work yet."""
        self.pair = pair
        self._ledger = settings.ledger
        self._tell = settings.tell
        self._guard = settings.guard
        self._drafted = settings.drafted
        self.in_work: deque[Work] = deque()
        self._free_slots = deque(range(SLOTS))
        self._awaiting_draft: deque[Job] = deque()  # windows behind an undrafted one

    def abandon(self) -> None:
        """Have the processes forget what is still in work: whoever ran it has gone."""
        jobs = self._jobs()
        if jobs and self.pair.is_running:
            for job in jobs:
                self._draft_of(job).cancel()
            self.pair.target.worker.send(ForgetJobs())

    def hand_out(self, work: Work) -> None:
        """Give a window to the processes."""
        task, pair, slot = work.task, self.pair, self._free_slots.popleft()
        request = self._ledger.languages.request(task)
        wants_draft = self._drafted and (self._guard is None or self._guard.should_draft())
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
        if self._guard is not None and not self.in_work:
            pair.fit_threads(with_drafts=pair.drafter is not None and job.drafted)
        work.job = job
        self.in_work.append(work)
        pair.target.worker.send(job)

    def pipes(self) -> list[Connection]:
        """Return what the processes speak through while something is in work."""
        drafter = self.pair.drafter
        return [self.pair.target.worker.pipe, *([drafter.worker.pipe] if drafter else [])]

    def listen(self, speaking: Iterable[object]) -> Work | None:
        """Take what the processes say; return the window that is decided by it, if one is.

        Raises `ModelError` if the target cannot be kept alive.
        """
        speaking, drafter, target = list(speaking), self.pair.drafter, self.pair.target.worker
        if drafter is not None and drafter.worker.pipe in speaking and self.pair.handle_drafter(drafter):
            self._draft_again(drafter)
        if target.pipe not in speaking:
            return None
        message = target.receive()
        if message is None:
            return self._replace_target()
        if isinstance(message, Progress | Note):
            self._tell(message)
        elif isinstance(message, Done) and self._is_first(message.id) and message.result is not None:
            self.pair.target.survived()
            return self._decided(message.result)
        elif isinstance(message, Failed) and self._is_first(message.id):
            return self._decided(None, message.error)
        return None

    def _is_first(self, number: int) -> bool:
        job = self.in_work[0].job if self.in_work else None
        return job is not None and job.id == number

    def _decided(self, result: WindowResult | None, error: As2dError | None = None) -> Work:
        """Note the outcome of the first window in work, and go on to the next."""
        work = self.in_work.popleft()
        work.outcome = WindowOutcome(work.task, result, error)
        if work.job is not None:
            self._free_slots.append(work.job.slot)
            self._consult_guard(work.job, result)
            self._ask_for_drafts()
        return work

    def _ask_for_drafts(self, newest: Job | None = None) -> None:
        """Ask for drafts up to the next undrafted window: a guard measures that, with no drafter beside it.

        `newest` is not in work yet.
        """
        jobs = [*self._jobs(), newest] if newest else self._jobs()
        undrafted = next((job.id for job in jobs if self._guard is not None and not job.drafted), None)
        while self._awaiting_draft and (undrafted is None or self._awaiting_draft[0].id < undrafted):
            job = self._awaiting_draft.popleft()
            if self.pair.drafter is not None and self.pair.can_draft(job.request):
                self.pair.drafter.draft(job)

    def _jobs(self) -> list[Job]:
        """Return what the processes have in work, in order."""
        return [work.job for work in self.in_work if work.job is not None]

    def _consult_guard(self, job: Job, result: WindowResult | None) -> None:
        """Stop the drafts of windows in work if the guard says so; share out threads for the next window."""
        if self._guard is None or result is None:
            return
        jobs = self._jobs()
        if self._guard.observe(result.stats, drafted=job.drafted, audio_s=job.duration_s):
            self._awaiting_draft.clear()
            for ahead in jobs:
                self._draft_of(ahead).cancel()
        if jobs:
            with_drafts = self.pair.drafter is not None and jobs[0].drafted
            if self.pair.fit_threads(with_drafts=with_drafts):
                self._send_again()

    def _draft_again(self, drafter: DrafterProcess) -> None:
        """Ask a drafter that is back after a death to draft the windows that the target is not at yet."""
        for job in islice(self._jobs(), 1, None):
            if job.drafted and job not in self._awaiting_draft and not self._draft_of(job).state.finished:
                drafter.draft(job)

    def _draft_of(self, job: Job) -> DraftReader:
        return self.pair.slots.stream(job.slot).reader(job.epoch, self.pair.target_spec.vocab_size)

    def _replace_target(self) -> Work | None:
        """Fail the window in work, if there is one, and give the ones after it to a new process."""
        ended = self.pair.replace_target()
        if not self.in_work:
            return None
        failed = self._decided(None, DecodeError(f"the target's process {ended} in a window"))
        self._send_again()
        return failed

    def _send_again(self) -> None:
        for work in self.in_work:
            if work.job is not None:
                work.job = replace(work.job, request=self._ledger.languages.request(work.task))
                self.pair.target.worker.send(work.job)
