"""The drafter's process: it writes drafts into shared memory, and learns nothing of the target's text."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection

from as2d_cli.decoding import DraftState, Retokenizer, write_draft
from as2d_cli.decoding.protocols import Drafter, TargetSpec, Tokenizer
from as2d_cli.domain.errors import As2dError
from as2d_cli.engine.measure import measure_drafter
from as2d_cli.engine.messages import (
    Attach,
    Done,
    DrafterReady,
    Failed,
    Job,
    Measure,
    ModelRef,
)
from as2d_cli.engine.slots import Slots
from as2d_cli.engine.worker import jobs, plugin_errors, serving
from as2d_cli.models import loader


def run_drafter(pipe: Connection, model: ModelRef, target: ModelRef) -> None:
    """Body of the drafter's process. Of the target it knows the vocabulary only."""
    with serving(pipe):
        drafter = loader.load_drafter(model.entry, model.path, model.threads)
        vocabulary = loader.load_tokenizer(target.entry, target.path)
        pipe.send(DrafterReady(drafter.spec))
        target_spec: TargetSpec = pipe.recv()
        attach: Attach = pipe.recv()
        with closing(Slots(attach.layout, attach.name, of_drafter=True)) as slots:
            for job in jobs(pipe, lambda order: measure_drafter(drafter, _is_enough(order, pipe))):
                try:
                    with plugin_errors("drafter"):
                        draft_window(drafter, vocabulary, target_spec, slots, job)
                    pipe.send(Done(job.id))
                except As2dError as error:
                    pipe.send(Failed(job.id, error))


def _is_enough(order: Measure, pipe: Connection) -> Callable[[], bool]:
    """Return what says that the drafter has been measured for long enough: a message, or the time."""
    deadline = time.perf_counter() + order.seconds
    return pipe.poll if order.until_told else lambda: time.perf_counter() >= deadline


def draft_window(drafter: Drafter, vocabulary: Tokenizer, target: TargetSpec, slots: Slots, job: Job) -> None:
    """Write the draft of one window into its slot. Raises whatever the drafter raises."""
    writer = slots.stream(job.slot).writer(job.epoch)
    features = slots.take(job.slot, drafter.spec.features)
    if writer.cancelled:  # the slot has been given on: the features may be another window's
        return
    try:
        retokenizer = Retokenizer(drafter.tokenizer, vocabulary, target.vocab_size)
        write_draft(writer, drafter.draft(features, job.request), retokenizer, end_id=target.end_id)
    except BaseException:
        writer.finish(DraftState.FAILED)
        raise
