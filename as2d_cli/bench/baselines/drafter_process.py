"""The drafter's process of the async-coupled mode: it reads the target's text from shared memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection

from as2d_cli.bench.baselines.async_coupled import Channel, Follower
from as2d_cli.bench.baselines.coupled import Coupling
from as2d_cli.decoding.protocols import SessionDrafter, TargetSpec, Tokenizer
from as2d_cli.domain.errors import As2dError, PluginError
from as2d_cli.engine.messages import Attach, DrafterReady, Failed, Job, ModelRef
from as2d_cli.engine.slots import Slots
from as2d_cli.engine.worker import plugin_errors, serving
from as2d_cli.models import loader

EPOCHS = 4096
"""Drafts that one window may begin: one per target pass, and no text is as long."""
SLOTS = 2
"""The streams of these carry the drafts and the text to draft after; features are in the first."""
_DRAFTS, _PREFIXES = range(SLOTS)
_PAUSE_S = 0.0005


@dataclass(frozen=True, slots=True)
class Followed:
    """What a follower did for a window."""

    id: int
    published: int
    """Tokens."""


def channel(slots: Slots, target: TargetSpec) -> Channel:
    """Return the streams between target and follower."""
    return Channel(slots.stream(_PREFIXES), slots.stream(_DRAFTS), target.end_id, target.vocab_size)


def run_follower(pipe: Connection, model: ModelRef, target_model: ModelRef) -> None:
    """Body of the process."""
    with serving(pipe):
        drafter = load_session_drafter(model)
        vocabulary = loader.load_tokenizer(target_model.entry, target_model.path)
        pipe.send(DrafterReady(drafter.spec))
        target: TargetSpec = pipe.recv()
        attach: Attach = pipe.recv()
        with closing(Slots(attach.layout, attach.name)) as slots:
            while True:
                job: Job = pipe.recv()
                pipe.send(_answer(drafter, vocabulary, target, slots, job))


def load_session_drafter(model: ModelRef) -> SessionDrafter:
    """Load a drafter. Raises `PluginError` if it cannot go on from a text that it is told."""
    drafter = loader.load_drafter(model.entry, model.path, model.threads)
    if not isinstance(drafter, SessionDrafter):
        raise PluginError(f"drafter {model.entry.name!r} cannot go on from a text that it is told")
    return drafter


def _answer(
    drafter: SessionDrafter, vocabulary: Tokenizer, target: TargetSpec, slots: Slots, job: Job
) -> Followed | Failed:
    try:
        with plugin_errors("drafter"):
            return Followed(job.id, follow(drafter, vocabulary, target, slots, job))
    except As2dError as error:
        return Failed(job.id, error)


def follow(
    drafter: SessionDrafter,
    vocabulary: Tokenizer,
    target: TargetSpec,
    slots: Slots,
    job: Job,
    *,
    wait: Callable[[], None] = lambda: time.sleep(_PAUSE_S),
) -> int:
    """Draft one window until the target wants no more of it; return how many tokens were published."""
    shared = channel(slots, target)
    known = drafter.spec.languages
    if known is not None and job.request.language not in {None, *known}:
        return 0
    while shared.drafts.epoch < job.epoch:
        wait()
    own = drafter.open(slots.take(0, drafter.spec.features), job.request)
    published = 0
    coupling = Coupling(own, drafter.tokenizer, vocabulary, target.vocab_size)
    if shared.drafts.epoch >= job.epoch + EPOCHS:  # the target is at a later window already
        return published
    follower = Follower(shared, coupling)
    while not follower.over and shared.drafts.epoch < job.epoch + EPOCHS:
        if follower.turn():
            published += 1
        else:
            wait()
    return published
