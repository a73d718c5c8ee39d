"""The engines of a cluster at work on a run: started where there is room, given pieces, listened to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from as2d_cli.addresses import anchored
from as2d_cli.cluster.desk import Desk, Heard
from as2d_cli.cluster.nodes import Node, nodes_of
from as2d_cli.cluster.pieces import (
    Broken,
    Decoded,
    DecodedFile,
    DecodedWindow,
    End,
    FilePiece,
    FoundLong,
    Item,
    Loaded,
    Piece,
    Sent,
)
from as2d_cli.cluster.reader import read_long
from as2d_cli.cluster.start import connected
from as2d_cli.cluster.station import Station
from as2d_cli.display import Display
from as2d_cli.errors import As2dError, DecodeError, ModelError, PluginError, RequestError
from as2d_cli.inputs import Input
from as2d_cli.report import NodeReport
from as2d_cli.requests import BatchRequest

_LOOK_S = 2.0
"""How often to look for nodes that came or went."""
_WAIT_S = 1.0
_ENGINES_PER_READER = 4
"""Reading is some twenty times as fast as decoding, or more."""


@dataclass(eq=False)
class _Engine:
    """One engine: an actor of Ray."""

    number: int
    node: Node
    actor: Any
    loading: Any
    """Ray's reference to what loading gives; None once that is known."""
    sending: list[Any] = field(default_factory=list)
    """Ray's generators, one per piece in work."""
    is_drafter_lost: bool = False
    paused_windows: int = 0


@contextmanager
def fleet(asked: BatchRequest, display: Display) -> Iterator[Fleet]:
    """Have engines on the cluster that is asked for. Raises `PluginError` without Ray or cluster."""
    began = time.perf_counter()
    with connected(asked.cluster.address if asked.cluster else None) as ray:
        engines = Fleet(ray, asked, display, began)
        try:
            yield engines
        finally:
            engines.close()


class Fleet:
    """Engines on all nodes; nodes may come and go."""

    def __init__(self, ray: Any, asked: BatchRequest, display: Display, began: float) -> None:  # noqa: ANN401
        """Start nothing yet. `began` is when starting began, by `time.perf_counter`."""
        self._ray, self._asked, self._display, self._began = ray, asked, display, began
        self._nodes: dict[str, Node] = {}
        self._engines: dict[int, _Engine] = {}
        self._started = 0
        self._looked = -_LOOK_S
        self._ready: Loaded | None = None
        self._error: As2dError | None = None
        self._paused_before = 0  # by engines that are gone
        self._readers: dict[Any, int] = {}  # Ray's generators, of long files

    @property
    def is_drafter_lost(self) -> bool:
        """Whether some engine goes on without its drafter although nobody chose that."""
        return any(engine.is_drafter_lost for engine in self._engines.values())

    @property
    def paused_windows(self) -> int:
        """Windows decoded without drafts because these had come to cost time."""
        return self._paused_before + sum(engine.paused_windows for engine in self._engines.values())

    def nodes(self) -> tuple[NodeReport, ...]:
        """Return what each node has done so far."""
        return tuple(node.report() for node in self._nodes.values() if node.began is not None)

    def close(self) -> None:
        """End all engines; what they did can still be asked for."""
        for engine in self._engines.values():
            self._ray.kill(engine.actor)
            self._paused_before += engine.paused_windows
            engine.node.ended()
        self._engines.clear()

    def await_first(self) -> tuple[Loaded, float]:
        """Wait for an engine; return what it tells of itself, and how long all that took, seconds.

        Raises what loading raised if it fails everywhere, `RequestError` if it does so anywhere.
        """
        while self._ready is None:
            self._recruit()
            self._listen(None)
        return self._ready, time.perf_counter() - self._began

    def run(self, items: Sequence[Item], heard: Heard) -> Iterator[Decoded | None]:
        """Yield each file once it is finished, in any order; None when there is no other yet.

        Raises as `await_first`, also if no engine is left.
        """
        first, _ = self.await_first()
        detects = first.request.language is None and bool(first.spec.languages)
        desk = Desk([_sendable(item) for item in items], heard, detects=detects)
        while not desk.is_over:
            self._recruit()
            self._hand_out(desk)
            self._listen(desk)
            while desk.done:
                yield desk.done.popleft()
            yield None

    def _recruit(self) -> None:
        """Start engines where there is room. Raises why there are none, if there is no hope of any."""
        if time.monotonic() - self._looked < _LOOK_S:
            return
        self._looked = time.monotonic()
        threads = self._asked.cluster.threads if self._asked.cluster else None
        alive = {node.id: node for node in nodes_of(self._ray.nodes(), threads)}
        for node in self._nodes.values():
            node.is_alive = node.id in alive
        self._nodes = alive | self._nodes
        for node in self._nodes.values():
            for _ in range(node.lacks):
                self._start(node)
        if not self._engines:
            raise self._error or ModelError("the Ray cluster has no node with processors")

    def _start(self, node: Node) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        asked = replace(self._asked, inputs=(), folder=None, cluster=None, threads=node.threads)
        there = NodeAffinitySchedulingStrategy(node.id, soft=False)
        station = self._ray.remote(Station).options(num_cpus=node.threads, scheduling_strategy=there)
        actor = station.remote(asked)
        self._started += 1
        node.running += 1
        self._engines[self._started] = _Engine(self._started, node, actor, actor.load.remote())

    def _hand_out(self, desk: Desk) -> None:
        while desk.to_read and len(self._readers) <= len(self._engines) // _ENGINES_PER_READER:
            item = desk.to_read.popleft()
            # the generator stops at so many objects that nobody has taken
            read = self._ray.remote(read_long).options(
                num_cpus=0, scheduling_strategy="SPREAD", _generator_backpressure_num_objects=4
            )
            self._readers[read.remote(item, self._asked.vad)] = item.number
        ready = [engine for engine in self._engines.values() if engine.loading is None]
        for engine in ready:
            piece = desk.next_for(engine.number, len(ready))
            if piece is not None:
                engine.sending.append(_begun(engine.actor, piece))

    def _listen(self, desk: Desk | None) -> None:
        """Wait for news, and take all there are."""
        loading = {one.loading: one for one in self._engines.values() if one.loading is not None}
        sending = {sending: one for one in self._engines.values() for sending in one.sending}
        reading = [
            reader
            for reader, number in self._readers.items()
            if desk and desk.has_room(number, len(self._engines))
        ]
        waited = [*loading, *sending, *reading]
        if not waited:
            time.sleep(_WAIT_S)
        ready, _ = self._ray.wait(waited, num_returns=1, timeout=_WAIT_S, fetch_local=False)
        if ready:
            ready, _ = self._ray.wait(waited, num_returns=len(waited), timeout=0, fetch_local=False)
        for one in ready:
            if one in loading:
                self._hear_loaded(loading[one], desk)
            elif desk is not None and one in sending:
                self._hear(sending[one], one, desk)
            elif desk is not None and one in self._readers:
                self._hear_reader(one, desk)

    def _hear_loaded(self, engine: _Engine, desk: Desk | None) -> None:
        """Take that an engine is ready, or cannot be. Raises `RequestError` for what is beyond the model."""
        name = engine.node.name
        try:
            loaded = self._ray.get(engine.loading)
        except self._ray.exceptions.RayError as error:
            why = f"node {name}: an engine cannot be started: {_reason(error)}"
            self._lose(engine, ModelError(why, "is as2d installed there?"), desk)
            return
        if isinstance(loaded, Loaded) and loaded.version != version("as2d"):
            loaded = PluginError(f"as2d {loaded.version} is installed there, here {version('as2d')}")
        if isinstance(loaded, RequestError):
            raise loaded
        if isinstance(loaded, As2dError):
            engine.node.error = type(loaded)(f"node {name}: {loaded.message}", loaded.hint)
            self._lose(engine, engine.node.error, desk)
            return
        engine.loading = None
        engine.node.loaded(loaded)
        self._ready = loaded
        self._looked = -_LOOK_S  # there may be room for more
        self._tell(engine, loaded.notes)

    def _hear(self, engine: _Engine, sending: Any, desk: Desk) -> None:  # noqa: ANN401 - Ray's generator
        try:
            sent = self._next(sending)
        except self._ray.exceptions.RayError as error:
            lost = ModelError(f"node {engine.node.name}: an engine was lost: {_reason(error)}")
            self._lose(engine, lost, desk)
            return
        if sent is None:
            engine.sending.remove(sending)
            return
        assert isinstance(sent, Sent)
        self._tell(engine, sent.notes)
        engine.is_drafter_lost, engine.paused_windows = sent.is_drafter_lost, sent.paused_windows
        match sent.body:
            case FoundLong():
                desk.found_long(engine.number, sent.body)
            case DecodedFile():
                engine.node.heard(desk.decoded_file(engine.number, sent.body))
            case DecodedWindow():
                engine.node.heard(desk.decoded_window(engine.number, sent.body))
            case Broken(broken):
                self._lose(
                    engine, ModelError(f"node {engine.node.name}: {broken.message}", broken.hint), desk
                )

    def _hear_reader(self, reader: Any, desk: Desk) -> None:  # noqa: ANN401
        number = self._readers[reader]
        if not desk.is_open(number):
            self._ray.cancel(reader)
            del self._readers[reader]
            return
        try:
            news = self._next(reader)
            if isinstance(news, End):
                desk.ended(number, news)
            elif news is not None:
                desk.read(number, news, next(reader))
                return
        except self._ray.exceptions.RayError as error:
            desk.give_up(number, DecodeError(f"its reading was lost: {_reason(error)}"))
        del self._readers[reader]

    def _lose(self, engine: _Engine, error: As2dError, desk: Desk | None) -> None:
        """Let others do what an engine had in work."""
        if self._engines.pop(engine.number, None) is None:
            return
        self._error = error
        self._display.note(error.message)
        self._paused_before += engine.paused_windows
        self._ray.kill(engine.actor)
        engine.node.lost(error)
        self._looked = -_LOOK_S
        if desk is not None:
            desk.lost(engine.number, error)

    def _next(self, sending: Any) -> Any:  # noqa: ANN401
        """Return the next that is sent, None at the end. Raises `RayError` if the sender is lost."""
        reference = next(sending, None)
        return None if reference is None else self._ray.get(reference)

    def _tell(self, engine: _Engine, notes: Sequence[str]) -> None:
        for note in notes:
            self._display.note(f"node {engine.node.name}: {note}")


def _begun(actor: Any, piece: Piece) -> Any:  # noqa: ANN401
    """Hand out a piece; return what its results are got from."""
    if isinstance(piece, FilePiece):
        return actor.files.remote(*piece.items)
    return actor.windows.remote(replace(piece, windows=None), piece.windows)


def _sendable(item: Item) -> Item:
    """Return an item that can be opened elsewhere, too: a node's current folder is another one."""
    given = item.input
    if given.stream is None:
        return replace(item, input=replace(given, path=anchored(given.path)), given=given.name)
    given.stream.seek(0)
    return replace(item, input=Input(given.path, given.subfolder), bytes=given.stream.read())


def _reason(error: Exception) -> str:
    """Return the first line of what Ray has to say."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
