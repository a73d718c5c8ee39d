"""What runs in the target's and in the drafter's process.

Each worker serves one model. It answers every job, tells its errors as data, and ends when the main
process does (its pipe closes). Only the target's worker sends results; the drafter's worker writes
drafts into shared memory and learns nothing of the target's text.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection

from as2d_cli.decoding import DraftState, Retokenizer, write_draft
from as2d_cli.decoding.protocols import Drafter, Target, TargetSpec, Tokenizer
from as2d_cli.domain.errors import As2dError, DecodeError, ModelError, described
from as2d_cli.engine.inner_drafts import InnerDrafts
from as2d_cli.engine.measure import DraftCosts, TargetCosts, measure_drafter, measure_target
from as2d_cli.engine.messages import (
    LOADING,
    Attach,
    DecodeSettings,
    Done,
    DrafterReady,
    Failed,
    Job,
    Measure,
    Measured,
    ModelRef,
    TargetReady,
)
from as2d_cli.engine.slots import Slots
from as2d_cli.engine.target_worker import TargetWorker
from as2d_cli.models import loader
from as2d_cli.system.spawning import follow_parent


def run_target(pipe: Connection, model: ModelRef, settings: DecodeSettings, inner: ModelRef | None) -> None:
    """Body of the target's process; `inner` is a drafter to be run in it, too."""
    with serving(pipe):
        target = loader.load_target(model.entry, model.path, model.threads, model.decode_threads)
        drafts, why_not = _inner_drafts(target, inner) if inner else (None, None)
        pipe.send(TargetReady(target.spec, why_not))
        attach: Attach = pipe.recv()
        with closing(Slots(attach.layout, attach.name)) as slots:
            worker = TargetWorker(target, slots, attach.draft_languages, settings, drafts)
            for job in _jobs(pipe, partial(_measured, target)):
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


def run_drafter(pipe: Connection, model: ModelRef, target: ModelRef) -> None:
    """Body of the drafter's process. Of the target it knows the vocabulary only."""
    with serving(pipe):
        drafter = loader.load_drafter(model.entry, model.path, model.threads)
        vocabulary = loader.load_tokenizer(target.entry, target.path)
        pipe.send(DrafterReady(drafter.spec))
        target_spec: TargetSpec = pipe.recv()
        attach: Attach = pipe.recv()
        with closing(Slots(attach.layout, attach.name, of_drafter=True)) as slots:
            for job in _jobs(pipe, lambda order: measure_drafter(drafter, _is_enough(order, pipe))):
                try:
                    with plugin_errors("drafter"):
                        draft_window(drafter, vocabulary, target_spec, slots, job)
                    pipe.send(Done(job.id))
                except As2dError as error:
                    pipe.send(Failed(job.id, error))


@contextmanager
def plugin_errors(model: str) -> Iterator[None]:
    """Turn whatever a model raises, even an exit of its process, into `DecodeError`: it fails a window."""
    try:
        yield
    except As2dError:
        raise
    except BaseException as error:
        loader.show_where(error)
        raise DecodeError(f"the {model} failed: {described(error)}") from error


@contextmanager
def serving(pipe: Connection) -> Iterator[None]:
    """Set up a worker process and turn the end of the main process into a quiet end of this one."""
    follow_parent()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):  # workers never read stdin, and native code must not write results
        os.dup2(null, descriptor)
    os.close(null)
    try:
        yield
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except As2dError as error:
        _give_up(pipe, error)
    except BaseException as error:  # whatever a plugin may raise: one line from the main process
        if os.environ.get("AS2D_DEBUG"):
            raise
        loader.show_where(error)
        _give_up(pipe, ModelError(f"a model failed: {described(error)}"))
        raise SystemExit(1) from error


def _give_up(pipe: Connection, error: As2dError) -> None:
    with suppress(OSError):  # the main process may be gone, or a plugin have closed the pipe
        pipe.send(Failed(LOADING, error))


def _jobs(pipe: Connection, measure: Callable[[Measure], TargetCosts | DraftCosts]) -> Iterator[Job]:
    """Yield the jobs that come in; answer requests to measure in between."""
    while True:
        message: Job | Measure = pipe.recv()
        if isinstance(message, Measure):
            pipe.send(Measured(measure(message)))
            if message.until_told:
                pipe.recv()
        else:
            yield message


def _measured(target: Target, order: Measure) -> TargetCosts:
    return measure_target(target, order.seconds, rounds=order.rounds, warm=order.warm)


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
