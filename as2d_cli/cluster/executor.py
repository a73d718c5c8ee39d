"""A run on a cluster: its engines and readers are given work, and listened to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from as2d_cli.batch.display import Display
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.report import NodeReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.work import Decoded, Heard, Item
from as2d_cli.cluster.messages import Broken, DecodedFile, DecodedWindow, End, FoundLong, Loaded, Sent
from as2d_cli.cluster.pool import Engine, EnginePool
from as2d_cli.cluster.splitter import read_long
from as2d_cli.cluster.start import connected, telling_line
from as2d_cli.cluster.tracker import Tracker
from as2d_cli.domain.errors import As2dError, DecodeError, ModelError, RequestError
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.system.addresses import anchored

_WAIT_S = 1.0
_ENGINES_PER_READER = 4
"""Reading is some twenty times as fast as decoding, or more."""


@contextmanager
def ray_executor(asked: BatchRequest, display: Display) -> Iterator[RayExecutor]:
    """Have engines on the cluster that is asked for. Raises `PluginError` without Ray or cluster."""
    began = time.perf_counter()
    with connected(asked.cluster.address if asked.cluster else None) as ray:
        pool = EnginePool(ray, asked)
        try:
            yield RayExecutor(ray, pool, display, began, vad=asked.vad)
        finally:
            pool.close()


class RayExecutor:
    """Gives out the work of a run, and hears what becomes of it."""

    plan: DraftPlan | None = None  # each node has its own

    def __init__(self, ray: Any, pool: EnginePool, display: Display, began: float, *, vad: bool) -> None:  # noqa: ANN401
        """Start nothing yet. `began` is when starting began, by `time.perf_counter`."""
        self._pool = pool
        self._ray, self._display, self._began, self._vad = ray, display, began, vad
        self._ready: Loaded | None = None
        self._tracker: Tracker | None = None  # before there is work
        self._readers: dict[Any, int] = {}  # Ray's generators, of long files

    @property
    def is_drafter_lost(self) -> bool:
        """Whether some engine goes on without its drafter although nobody chose that."""
        return self._pool.is_drafter_lost

    @property
    def paused_windows(self) -> int:
        """Windows decoded without drafts because these had come to cost time."""
        return self._pool.paused_windows

    @property
    def nodes(self) -> tuple[NodeReport, ...]:
        """What each node has done so far."""
        return self._pool.nodes()

    @property
    def comparison(self) -> Comparison:
        """What both ways of decoding came to so far, if they are compared."""
        return self._tracker.comparison if self._tracker else Comparison()

    def await_first(self) -> tuple[Loaded, float]:
        """Wait for an engine; return what it tells of itself, and how long all that took, seconds.

        Raises what loading raised if it fails everywhere, `RequestError` if it does so anywhere.
        """
        while self._ready is None:
            self._pool.recruit()
            self._listen()
        return self._ready, time.perf_counter() - self._began

    def run(self, items: Sequence[Item], heard: Heard) -> Iterator[Decoded | None]:
        """Yield each file once it is finished, in any order; None when there is no other yet.

        Raises as `await_first`, also if no engine is left.
        """
        first, _ = self.await_first()
        detects = first.request.language is None and bool(first.spec.languages)
        self._tracker = tracker = Tracker([_sendable(item) for item in items], heard, detects=detects)
        while not tracker.is_over:
            self._pool.recruit()
            self._hand_out(tracker)
            self._listen()
            while tracker.done:
                yield tracker.done.popleft()
            yield None

    def _hand_out(self, tracker: Tracker) -> None:
        while tracker.to_read and len(self._readers) <= len(self._pool.engines) // _ENGINES_PER_READER:
            item = tracker.to_read.popleft()
            # the generator stops at so many objects that nobody has taken
            read = self._ray.remote(read_long).options(
                num_cpus=0, scheduling_strategy="SPREAD", _generator_backpressure_num_objects=4
            )
            self._readers[read.remote(item, self._vad)] = item.number
        ready = [engine for engine in self._pool.engines if engine.loading is None]
        for engine in ready:
            piece = tracker.next_for(engine.number, len(ready))
            if piece is not None:
                engine.begin(piece)

    def _listen(self) -> None:
        """Wait for news, and take all there are."""
        engines, tracker = self._pool.engines, self._tracker
        loading = {one.loading: one for one in engines if one.loading is not None}
        sending = {sending: one for one in engines for sending in one.sending}
        reading = [
            reader
            for reader, number in self._readers.items()
            if tracker and tracker.has_room(number, len(engines))
        ]
        for one in self._news([*loading, *sending, *reading]):
            if one in loading:
                self._hear_loaded(loading[one])
            elif tracker is not None and one in sending:
                self._hear(sending[one], one, tracker)
            elif tracker is not None and one in self._readers:
                self._hear_reader(one, tracker)

    def _news(self, waited: list[Any]) -> list[Any]:
        """Return those in which there is something new, after a while perhaps none."""
        if not waited:
            time.sleep(_WAIT_S)
            return []
        ready, _ = self._ray.wait(waited, num_returns=1, timeout=_WAIT_S, fetch_local=False)
        if ready:  # and what else there is by now
            ready, _ = self._ray.wait(waited, num_returns=len(waited), timeout=0, fetch_local=False)
        return list(ready)

    def _hear_loaded(self, engine: Engine) -> None:
        """Note that an engine is ready, or cannot be. Raises `RequestError` for what is beyond the model."""
        name = engine.node.name
        try:
            loaded = self._ray.get(engine.loading)
        except self._ray.exceptions.RayError as error:
            why = f"node {name}: an engine cannot be started: {telling_line(error)}"
            self._lose(engine, ModelError(why, "is as2d installed there?"))
            return
        if isinstance(loaded, RequestError):
            raise loaded
        if isinstance(loaded, As2dError):
            engine.node.error = type(loaded)(f"node {name}: {loaded.message}", loaded.hint)
            self._lose(engine, engine.node.error)
            return
        self._ready = loaded
        self._pool.loaded(engine, loaded)
        self._tell(engine, loaded.notes)

    def _hear(self, engine: Engine, sending: Any, tracker: Tracker) -> None:  # noqa: ANN401 - Ray's generator
        try:
            sent = self._next(sending)
        except self._ray.exceptions.RayError as error:
            lost = ModelError(f"node {engine.node.name}: an engine was lost: {telling_line(error)}")
            self._lose(engine, lost)
            return
        if sent is None:
            engine.sending.remove(sending)
            return
        assert isinstance(sent, Sent)
        self._tell(engine, sent.notes)
        engine.told(sent)
        match sent.body:
            case FoundLong():
                tracker.found_long(engine.number, sent.body)
            case DecodedFile():
                engine.node.heard(tracker.decoded_file(engine.number, sent.body))
            case DecodedWindow():
                engine.node.heard(tracker.decoded_window(engine.number, sent.body))
            case Broken(broken):
                lost = ModelError(f"node {engine.node.name}: {broken.message}", broken.hint)
                self._lose(engine, lost)

    def _hear_reader(self, reader: Any, tracker: Tracker) -> None:  # noqa: ANN401
        number = self._readers[reader]
        if not tracker.is_open(number):
            self._ray.cancel(reader)
            del self._readers[reader]
            return
        try:
            news = self._next(reader)
            if isinstance(news, End):
                tracker.ended(number, news)
            elif news is not None:
                tracker.read(number, news, next(reader))
                return
        except self._ray.exceptions.RayError as error:
            tracker.give_up(number, DecodeError(f"its reading was lost: {telling_line(error)}"))
        del self._readers[reader]

    def _lose(self, engine: Engine, error: As2dError) -> None:
        """Let others do what an engine had in work."""
        if not self._pool.lose(engine, error):
            return
        self._display.note(error.message)
        if self._tracker is not None:
            self._tracker.lost(engine.number, error)

    def _next(self, sending: Any) -> Any:  # noqa: ANN401
        """Return the next that is sent, None at the end. Raises `RayError` if the sender is lost."""
        reference = next(sending, None)
        return None if reference is None else self._ray.get(reference)

    def _tell(self, engine: Engine, notes: Sequence[str]) -> None:
        for note in notes:
            self._display.note(f"node {engine.node.name}: {note}")


def _sendable(item: Item) -> Item:
    """Return an item that can be opened elsewhere, too: a node's current folder is another one."""
    given = item.input
    if given.stream is None:
        return replace(item, input=replace(given, path=anchored(given.path)), given=given.name)
    given.stream.seek(0)
    return replace(item, input=Input(given.path, given.subfolder), bytes=given.stream.read())
