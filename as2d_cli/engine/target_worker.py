"""The target's process: for each window it opens a session, picks the draft and runs the decode loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection

from as2d_cli.decoding import (
    EMPTY,
    PRIOR,
    Aligner,
    Alignment,
    DraftReader,
    DraftState,
    PassageAligner,
    Policy,
    decode,
)
from as2d_cli.decoding.protocols import Target, TargetSession
from as2d_cli.domain.errors import As2dError, DecodeError
from as2d_cli.domain.types import Request, Step, WindowResult
from as2d_cli.engine.inner_drafts import InnerDrafts
from as2d_cli.engine.measure import TargetCosts, measure_target
from as2d_cli.engine.messages import (
    Attach,
    DecodeSettings,
    Done,
    Failed,
    Job,
    Measure,
    ModelRef,
    Note,
    Progress,
    TargetReady,
)
from as2d_cli.engine.rescue.care import Care
from as2d_cli.engine.rescue.rescue import Rescuer, opened
from as2d_cli.engine.results import Course, conclude, trace
from as2d_cli.engine.slots import Slots
from as2d_cli.engine.worker import jobs, plugin_errors, serving
from as2d_cli.models import loader

_PROGRESS_S = 0.2
"""Seconds between two reports of how far a window is."""


class FileLanguage:
    """The language of the file in work: its first window decides, the later ones keep it."""

    def __init__(self) -> None:
        self._group = -1
        self.code = ""

    def request(self, job: Job) -> Request:
        """Return the request for a window, in the file's language if that is known."""
        is_known = job.request.language is None and job.group == self._group and self.code
        return job.request.in_language(self.code) if is_known else job.request

    def note(self, job: Job, code: str | None) -> None:
        """Note in which language a window was opened: the first of a file that tells one decides."""
        if job.group != self._group or not self.code:
            self._group, self.code = job.group, code or ""


class TargetWorker:
    """Decodes windows; what the controller learns is kept from window to window."""

    def __init__(
        self,
        target: Target,
        slots: Slots,
        draft_languages: tuple[str, ...] | None,
        settings: DecodeSettings,
        inner: InnerDrafts | None = None,
    ) -> None:
        """Decode what is in `slots`; drafts are of use in `draft_languages` (None: in all).

        With `inner`, drafts come from there and not from the slots.
        """
        self._target = target
        self._slots = slots
        self._draft_languages = draft_languages
        self._settings = settings
        self._inner = inner
        self._inner_failed = False
        self._policies: dict[str, Policy] = {}
        self._language = FileLanguage()
        self._rescuer = Rescuer(target)

    def decode(self, job: Job, pipe: Connection) -> WindowResult:
        """Decode one window. Raises `DecodeError` or `ModelError`."""
        began = time.perf_counter()
        features = self._slots.take(job.slot, self._target.spec.features)
        request = self._request(job)
        is_looked_after = job.care is not None and job.care.rescues
        session = opened(self._target, features, request, carefully=not is_looked_after)
        self._language.note(job, session.language)
        encoded = time.perf_counter()
        draft = (
            self._inner_draft(self._inner, job, session, pipe)
            if self._inner
            else self._draft(job, session.language)
        )
        steps = list(self._steps(session, draft, job, pipe))
        draft.cancel()  # what is left of it is of no use any more
        result = conclude(self._target, session, request, steps, Course(job.duration_s, began, encoded))
        result = replace(result, stats=replace(result.stats, drafted=draft.snapshot()))
        if job.traced:
            result = replace(result, trace=trace(session, draft, steps, began))
        if job.care is not None:
            result = self._looked_after(result, job, request, job.care)
        if self._inner:
            self._inner.remember((job.group, job.index), result.tokens)
        return result

    def _request(self, job: Job) -> Request:
        """Return the request for a window, with times of words where speech without words is looked for."""
        request = self._language.request(job)
        return replace(request, word_times=True) if job.care and job.care.listens else request

    def _looked_after(self, first: WindowResult, job: Job, request: Request, care: Care) -> WindowResult:
        """Return the better text of a window, and its words if those were asked for."""
        samples = self._slots.take_samples(job.slot, job.n_samples)
        result = self._rescuer.looked_after(first, samples, request, care)
        return result if job.request.word_times else replace(result, words=())

    def _draft(self, job: Job, spoken: str | None) -> DraftReader:
        if not job.drafted:
            return EMPTY
        draft = self._slots.stream(job.slot).reader(job.epoch, self._target.spec.vocab_size)
        useful = self._draft_languages
        if useful is not None and spoken and spoken not in useful:
            draft.cancel()
        return EMPTY if draft.state is DraftState.CANCELLED else draft  # not wanted before it began

    def _inner_draft(
        self, inner: InnerDrafts, job: Job, session: TargetSession, pipe: Connection
    ) -> DraftReader:
        """Draft in this process, if the window is to be drafted; a failure costs the draft only."""
        if not job.drafted:
            return EMPTY
        try:
            return inner.draft((job.group, job.index), job.request, session)
        except As2dError as error:
            if not self._inner_failed:
                self._inner_failed = True
                pipe.send(Note(loader.failed_draft(inner.plugin, error)))
            return EMPTY

    @property
    def _searches(self) -> bool:
        return self._inner is not None and self._inner.passages

    def _steps(
        self, session: TargetSession, draft: DraftReader, job: Job, pipe: Connection
    ) -> Iterator[Step]:
        settings = job.decode or self._settings
        aligner: Alignment = PassageAligner() if self._searches else Aligner(settings.align)
        policy = self._policies.setdefault(settings.name, settings.policy(PRIOR if self._searches else None))
        reported_s, tokens = time.perf_counter(), 0
        steps = decode(session, draft, aligner, policy, end_id=self._target.spec.end_id)
        vocab_size = self._target.spec.vocab_size
        for count, step in enumerate(steps, start=1):
            if not all(0 <= token < vocab_size for token in step.tokens):
                raise DecodeError(f"the target decided {step.tokens}, not all of which are tokens of its own")
            tokens += len(step.tokens)
            yield step
            if (now_s := time.perf_counter()) - reported_s > _PROGRESS_S:
                reported_s = now_s
                pipe.send(Progress(job.id, tokens, count))


def run_target(pipe: Connection, model: ModelRef, settings: DecodeSettings, inner: ModelRef | None) -> None:
    """Body of the target's process; `inner` is a drafter to be run in it, too."""
    with serving(pipe):
        target = loader.load_target(model.entry, model.path, model.threads, model.decode_threads)
        drafts, why_not = _inner_drafts(target, inner) if inner else (None, None)
        pipe.send(TargetReady(target.spec, why_not))
        attach: Attach = pipe.recv()
        with closing(Slots(attach.layout, attach.name)) as slots:
            worker = TargetWorker(target, slots, attach.draft_languages, settings, drafts)
            for job in jobs(pipe, partial(_measured, target)):
                try:
                    with plugin_errors("target"):
                        result = worker.decode(job, pipe)
                    pipe.send(Done(job.id, result))
                except As2dError as error:
                    pipe.send(Failed(job.id, error))


def _inner_drafts(target: Target, model: ModelRef) -> tuple[InnerDrafts | None, As2dError | None]:
    """Load a drafter into the target's process; without it the run goes on, like without any drafter."""
    try:
        with plugin_errors("drafter"):
            drafter = loader.load_inner_drafter(model.entry, model.path, model.threads, target.tokenizer)
            return InnerDrafts(drafter, target.spec.vocab_size, model.entry.plugin), None
    except As2dError as error:
        return None, error


def _measured(target: Target, order: Measure) -> TargetCosts:
    return measure_target(target, order.seconds, rounds=order.rounds, warm=order.warm)
