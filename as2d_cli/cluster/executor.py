"""A run on a cluster: hands pieces to engines, has long files split, and handles what is sent back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from as2d_cli.batch.display import Display
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.report import NodeReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.work import Decoded, Item, OnWindow
from as2d_cli.cluster.messages import (
    ActorMessage,
    ChunkHeader,
    DecodedFile,
    DecodedWindow,
    EngineFailed,
    EngineStarted,
    Event,
    FileEnd,
    LongFileFound,
)
from as2d_cli.cluster.pool import EnginePool, RemoteEngine
from as2d_cli.cluster.splitter import split_file
from as2d_cli.cluster.start import connect, summary_line
from as2d_cli.cluster.tracker import Tracker
from as2d_cli.domain.errors import As2dError, DecodeError, ModelError, RequestError
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.profile.run_costs import DraftSums
from as2d_cli.system.addresses import anchored

_WAIT_S = 1.0
_ENGINES_PER_SPLITTER = 4
"""Reading is some twenty times as fast as decoding, or more."""
_CHUNK_BACKLOG = 4
"""A splitter pauses while so many of its messages have not been taken: a chunk and its header are two."""


@contextmanager
def start_ray(batch_request: BatchRequest, display: Display) -> Iterator[RayExecutor]:
    """Have engines on the cluster of the request until the block ends.

    Raises `PluginError` if Ray is not installed or the cluster cannot be reached, `RequestError` for what
    cannot be its address.
    """
    began = time.perf_counter()
    with connect(batch_request.cluster.address if batch_request.cluster else None) as ray:
        pool = EnginePool(ray, batch_request)
        try:
            yield RayExecutor(ray, pool, display, began, batch_request)
        finally:
            pool.close()


class RayExecutor:
    """Decodes files on the engines of a cluster: the `Executor` of `--engine ray`."""

    plan: DraftPlan | None = None  # each node has its own

    def __init__(
        self,
        ray: Any,  # noqa: ANN401
        pool: EnginePool,
        display: Display,
        began: float,
        batch_request: BatchRequest,
    ) -> None:
        """Start nothing yet. `began` is when starting began, by `time.perf_counter`."""
        self._pool = pool
        self._ray, self._display, self._began = ray, display, began
        self._vad, self._choice = batch_request.vad, batch_request.audio_choice
        self._first_engine: EngineStarted | None = None
        self._tracker: Tracker | None = None  # before there is work
        self._splitters: dict[Any, int] = {}  # Ray's generators, and the number of the file that each reads

    @property
    def is_drafter_lost(self) -> bool:
        """Whether some engine goes on without its drafter although nobody chose that."""
        return self._pool.is_drafter_lost

    @property
    def draft_sums(self) -> DraftSums:
        """Windows decoded with drafts and without."""
        return self._pool.draft_sums

    @property
    def nodes(self) -> tuple[NodeReport, ...]:
        """What each node has done so far."""
        return self._pool.node_reports()

    @property
    def comparison(self) -> Comparison:
        """What both ways of decoding came to so far, if they are compared."""
        return self._tracker.comparison if self._tracker else Comparison()

    def await_first(self) -> tuple[EngineStarted, float]:
        """Wait for an engine; return what it is like, and how long it took since `began`, seconds.

        Raises what loading raised if it fails everywhere, `RequestError` if it does so anywhere.
        """
        while self._first_engine is None:
            self._pool.start_engines()
            self._handle_messages()
        return self._first_engine, time.perf_counter() - self._began

    def run(self, items: Sequence[Item], on_window: OnWindow) -> Iterator[Decoded | None]:
        """Yield each file once it is finished, in any order; None when there is no other yet.

        Raises as `await_first`, also if no engine is left.
        """
        first, _ = self.await_first()
        detects = first.request.language is None and bool(first.spec.languages)
        portable = [_portable(item) for item in items]
        self._tracker = tracker = Tracker(portable, on_window, detects_language=detects)
        while not tracker.is_over:
            self._pool.start_engines()
            self._start_splitters(tracker)
            self._submit_pieces(tracker)
            self._handle_messages()
            while tracker.finished:
                yield tracker.finished.popleft()
            yield None

    def _start_splitters(self, tracker: Tracker) -> None:
        """Have long files read: by one splitter, and one more for every few engines."""
        while tracker.to_split and len(self._splitters) <= len(self._pool.engines) // _ENGINES_PER_SPLITTER:
            item = tracker.to_split.popleft()
            task = self._ray.remote(split_file).options(
                num_cpus=0, scheduling_strategy="SPREAD", _generator_backpressure_num_objects=_CHUNK_BACKLOG
            )
            self._splitters[task.remote(item, self._vad, self._choice)] = item.number

    def _submit_pieces(self, tracker: Tracker) -> None:
        loaded = [engine for engine in self._pool.engines if engine.loading is None]
        for engine in loaded:
            piece = tracker.next_piece(engine.number, len(loaded))
            if piece is not None:
                engine.submit(piece)

    def _handle_messages(self) -> None:
        """Wait for messages, a while at most, and handle one of each sender that has any."""
        handlers = self._handlers()
        for sender in self._wait(list(handlers)):
            handlers[sender]()

    def _handlers(self) -> dict[Any, Callable[[], None]]:
        """Return what handles the next message, by Ray's reference or generator that it comes from."""
        engines, tracker = self._pool.engines, self._tracker
        handlers: dict[Any, Callable[[], None]] = {
            engine.loading: partial(self._handle_loading, engine)
            for engine in engines
            if engine.loading is not None
        }
        if tracker is None:
            return handlers
        for engine in engines:
            for stream in engine.streams:
                handlers[stream] = partial(self._handle_stream, engine, stream, tracker)
        for splitter, number in self._splitters.items():
            if tracker.wants_chunk(number, len(engines)):
                handlers[splitter] = partial(self._handle_splitter, splitter, tracker)
        return handlers

    def _wait(self, senders: list[Any]) -> list[Any]:
        """Return the senders that have a message, after a while perhaps none."""
        if not senders:
            time.sleep(_WAIT_S)
            return []
        have, _ = self._ray.wait(senders, num_returns=1, timeout=_WAIT_S, fetch_local=False)
        if have:  # at least one; now all that have
            have, _ = self._ray.wait(senders, num_returns=len(senders), timeout=0, fetch_local=False)
        return list(have)

    def _handle_loading(self, engine: RemoteEngine) -> None:
        """Take an engine into use, or remove it. Raises `RequestError` for what is beyond the model."""
        name = engine.node.name
        try:
            started = self._ray.get(engine.loading)
        except self._ray.exceptions.RayError as error:
            why = f"node {name}: an engine cannot be started: {summary_line(error)}"
            self._remove_engine(engine, ModelError(why, "is as2d installed there?"))
            return
        if isinstance(started, RequestError):
            raise started
        if isinstance(started, As2dError):
            engine.node.error = type(started)(f"node {name}: {started.message}", started.hint)
            self._remove_engine(engine, engine.node.error)
            return
        self._first_engine = self._first_engine or started
        self._pool.engine_started(engine, started)
        self._show_notes(engine, started.notes)

    def _handle_stream(self, engine: RemoteEngine, stream: Any, tracker: Tracker) -> None:  # noqa: ANN401
        """Handle the next message of an engine about a piece."""
        try:
            message = self._next(stream)
        except self._ray.exceptions.RayError as error:
            why = f"node {engine.node.name}: an engine was lost: {summary_line(error)}"
            self._remove_engine(engine, ModelError(why))
            return
        if message is None:
            engine.streams.remove(stream)
            return
        assert isinstance(message, ActorMessage)
        self._show_notes(engine, message.notes)
        engine.update(message)
        self._handle_event(engine, message.event, tracker)

    def _handle_event(self, engine: RemoteEngine, event: Event, tracker: Tracker) -> None:
        match event:
            case LongFileFound():
                tracker.handle_long_file(engine.number, event)
            case DecodedFile():
                engine.node.add_audio(tracker.handle_file(engine.number, event))
            case DecodedWindow():
                engine.node.add_audio(tracker.handle_window(engine.number, event))
            case EngineFailed(error):
                lost = ModelError(f"node {engine.node.name}: {error.message}", error.hint)
                self._remove_engine(engine, lost)

    def _handle_splitter(self, splitter: Any, tracker: Tracker) -> None:  # noqa: ANN401
        """Take the next chunk of a long file, or its end; stop reading a file that has failed meanwhile."""
        number = self._splitters[splitter]
        if not tracker.is_open(number):
            self._ray.cancel(splitter)
            del self._splitters[splitter]
            return
        try:
            message = self._next(splitter)
            if isinstance(message, ChunkHeader):
                tracker.add_chunk(number, message.indexes, next(splitter))
                return
            if isinstance(message, FileEnd):
                tracker.end_reading(number, message)
        except self._ray.exceptions.RayError as error:
            tracker.fail_file(number, DecodeError(f"its reading was lost: {summary_line(error)}"))
        del self._splitters[splitter]

    def _remove_engine(self, engine: RemoteEngine, error: As2dError) -> None:
        """Let others do what an engine had in work, and tell the user why."""
        if not self._pool.remove(engine, error):
            return
        self._display.note(error.message)
        if self._tracker is not None:
            self._tracker.remove_engine(engine.number, error)

    def _next(self, stream: Any) -> Any:  # noqa: ANN401
        """Return the next message, None at the end. Raises `RayError` if the sender is lost."""
        reference = next(stream, None)
        return None if reference is None else self._ray.get(reference)

    def _show_notes(self, engine: RemoteEngine, notes: Sequence[str]) -> None:
        for note in notes:
            self._display.note(f"node {engine.node.name}: {note}")


def _portable(item: Item) -> Item:
    """Return an item that can be opened on a node, whose current folder and standard input are others."""
    given = item.input
    if given.stream is None:
        return replace(item, input=replace(given, path=anchored(given.path)), given=given.name)
    given.stream.seek(0)
    return replace(item, input=Input(given.path, given.subfolder), bytes=given.stream.read())
