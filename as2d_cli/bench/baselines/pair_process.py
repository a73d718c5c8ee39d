"""The process of the baselines that has both models: their drafters are told the target's text.

In the serial modes one of the two models is at work at a time. In async-coupled mode the target follows
drafts that another process writes (see `drafter_process`). Windows are decoded one at a time.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from as2d_cli.bench.baselines.async_coupled import COUPLED, FollowedDraft
from as2d_cli.bench.baselines.coupled import Coupling
from as2d_cli.bench.baselines.drafter_process import channel, load_session_drafter
from as2d_cli.bench.baselines.serial import WHOLE_DRAFT, Schedule, new_schedule, serial_draft
from as2d_cli.decoding import EMPTY, Aligner, Policy, decode
from as2d_cli.decoding.protocols import DrafterSpec, SessionDrafter, Target, TargetSession, TargetSpec
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import Request, Step, WindowResult, WindowTrace
from as2d_cli.engine.messages import Attach, DecodeSettings, Done, Failed, Job, ModelRef
from as2d_cli.engine.results import Course, conclude
from as2d_cli.engine.slots import Slots
from as2d_cli.engine.target_worker import FileLanguage
from as2d_cli.engine.worker import plugin_errors, serving
from as2d_cli.models import loader


@dataclass(frozen=True, slots=True)
class PairReady:
    """Both models are loaded."""

    target: TargetSpec
    drafter: DrafterSpec


@dataclass(frozen=True, slots=True)
class _Drafted:
    """Steps with a drafter: the seconds that the target waited for it, and the tokens it proposed."""

    steps: list[Step]
    waited_s: float = 0.0
    tokens: int = 0


def run_pair(pipe: Connection, target_model: ModelRef, drafter_model: ModelRef) -> None:
    """Body of the process. `Job.decode` says how to decode, its name is the mode."""
    with serving(pipe):
        target = loader.load_target(target_model.entry, target_model.path, target_model.threads)
        drafter = load_session_drafter(drafter_model)
        pipe.send(PairReady(target.spec, drafter.spec))
        attach: Attach = pipe.recv()
        with closing(Slots(attach.layout, attach.name)) as slots:
            decoder = PairDecoder(target, drafter, slots)
            while True:
                job: Job = pipe.recv()
                pipe.send(_answer(decoder, job))


def _answer(decoder: PairDecoder, job: Job) -> Done | Failed:
    try:
        with plugin_errors("model"):
            return Done(job.id, decoder.decode(job))
    except As2dError as error:
        return Failed(job.id, error)


class PairDecoder:
    """Decodes windows with both models; what a mode learns is kept from window to window."""

    def __init__(self, target: Target, drafter: SessionDrafter, slots: Slots) -> None:
        """Decode what is in the first of `slots`."""
        self._target, self._drafter, self._slots = target, drafter, slots
        self._schedules: dict[str, Schedule] = {}
        self._policies: dict[str, Policy] = {}
        self._language = FileLanguage()

    def decode(self, job: Job) -> WindowResult:
        """Decode one window. Raises `DecodeError`, or whatever a plugin raises."""
        settings = job.decode or DecodeSettings()
        began = time.perf_counter()
        # before the target encodes: the follower begins once this is there
        followed = self._followed(job) if settings.name == COUPLED else None
        try:
            request = self._language.request(job)
            session = self._target.open(self._slots.take(0, self._target.spec.features), request)
            self._language.note(job, session.language)
            encoded = time.perf_counter()
            if followed is not None:
                drafted = self._following(session, settings, followed)
            else:
                drafted = self._serial(session, replace(request, language=session.language), settings.name)
        finally:
            if followed is not None:
                followed.cancel()
        course = Course(job.duration_s, began, encoded, drafted.waited_s)
        result = conclude(self._target, session, request, drafted.steps, course)
        trace = WindowTrace(began, tuple(drafted.steps), session.max_tokens, drafted.waited_s)
        return replace(result, stats=replace(result.stats, drafted=drafted.tokens), trace=trace)

    def _followed(self, job: Job) -> FollowedDraft:
        return FollowedDraft(channel(self._slots, self._target.spec), job.epoch)

    def _following(
        self, session: TargetSession, settings: DecodeSettings, followed: FollowedDraft
    ) -> _Drafted:
        """Decode beside a follower, which counts its tokens itself."""
        policy = self._policies.setdefault(settings.name, settings.policy())
        return _Drafted(list(decode(session, followed, followed, policy, end_id=self._target.spec.end_id)))

    def _serial(self, session: TargetSession, request: Request, mode: str) -> _Drafted:
        end_id, known = self._target.spec.end_id, self._drafter.spec.languages
        if known is not None and request.language not in known:
            return _Drafted(list(decode(session, EMPTY, Aligner(), WHOLE_DRAFT, end_id=end_id)))
        began = time.perf_counter()
        own = self._drafter.open(self._slots.take(0, self._drafter.spec.features), request)
        coupling = Coupling(
            own, self._drafter.tokenizer, self._target.tokenizer, self._target.spec.vocab_size
        )
        opened_s = time.perf_counter() - began
        schedule = self._schedules.setdefault(mode, new_schedule(mode))
        draft = serial_draft(mode, coupling, end_id=end_id, schedule=schedule)
        steps = list(decode(session, draft, draft, WHOLE_DRAFT, end_id=end_id))
        return _Drafted(steps, opened_s + draft.ms / 1e3, draft.drafted)
