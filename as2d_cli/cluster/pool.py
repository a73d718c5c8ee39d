"""The engines of a run on the nodes of a cluster: started where there is room, removed when lost."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from as2d_cli.batch.report import NodeReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.cluster.actor import EngineActor
from as2d_cli.cluster.messages import ActorMessage, EngineStarted, FilePiece, Piece
from as2d_cli.cluster.nodes import Node, nodes_of
from as2d_cli.cluster.start import why_unreachable
from as2d_cli.domain.errors import As2dError, ModelError, PluginError
from as2d_cli.profile.run_costs import DraftSums

_REFRESH_S = 2.0
"""How often to look for nodes that came or went."""
_HEAD_PATIENCE_S = 20.0
"""How long the cluster's head may be gone."""
_END_PATIENCE_S = 2.0
"""How long to wait for engines to clean up before they are killed: some may not have begun."""
_CONTROL = "control"
"""Ray's concurrency group of calls that do not wait for those before them."""


@dataclass(eq=False)
class RemoteEngine:
    """An engine on a node, as the driver knows it."""

    number: int
    node: Node
    actor: Any
    """Ray's handle of the `EngineActor`."""
    loading: Any
    """Ray's reference to what `EngineActor.load` returns; None once that is known."""
    streams: list[Any] = field(default_factory=list)
    """Ray's generators of messages, one for each piece in work."""
    is_drafter_lost: bool = False
    draft_sums: DraftSums = field(default_factory=DraftSums)

    def submit(self, piece: Piece) -> None:
        """Hand it a piece, to be decoded after those that it has."""
        if isinstance(piece, FilePiece):
            stream = self.actor.files.remote(*piece.items)
        else:  # Ray resolves a reference that is an argument, not one inside of an argument
            stream = self.actor.windows.remote(replace(piece, chunk=None), piece.chunk)
        self.streams.append(stream)

    def update(self, message: ActorMessage) -> None:
        """Take over the state that came with a message."""
        self.is_drafter_lost, self.draft_sums = message.is_drafter_lost, message.draft_sums


class EnginePool:
    """All engines of a run. Nodes, and engines with them, may come and go."""

    def __init__(self, ray: Any, batch_request: BatchRequest) -> None:  # noqa: ANN401 - a module
        """Start nothing yet."""
        self._ray, self._batch_request = ray, batch_request
        self._nodes: dict[str, Node] = {}
        self._engines: dict[int, RemoteEngine] = {}
        self._n_started = 0
        self._refreshed = -_REFRESH_S
        self._head_answered = time.monotonic()
        self._error: As2dError | None = None  # of the engine lost last
        self._sums_before = DraftSums()  # of engines that were removed

    @property
    def engines(self) -> list[RemoteEngine]:
        """Engines that are loaded or loading."""
        return list(self._engines.values())

    @property
    def is_drafter_lost(self) -> bool:
        """Whether some engine goes on without its drafter although nobody chose that."""
        return any(engine.is_drafter_lost for engine in self._engines.values())

    @property
    def draft_sums(self) -> DraftSums:
        """Windows decoded with drafts and without."""
        return sum((engine.draft_sums for engine in self._engines.values()), self._sums_before)

    def node_reports(self) -> tuple[NodeReport, ...]:
        """Return what each node has done so far."""
        return tuple(node.report() for node in self._nodes.values() if node.began is not None)

    def start_engines(self) -> None:
        """Start engines where there is room. Raises why there are none if there is no hope of any."""
        if time.monotonic() - self._refreshed < _REFRESH_S:
            return
        self._refreshed = time.monotonic()
        if not self._has_head():
            return
        cluster = self._batch_request.cluster
        alive = {node.id: node for node in nodes_of(self._ray.nodes(), cluster.threads if cluster else None)}
        for node in self._nodes.values():
            node.is_alive = node.id in alive
        self._nodes = alive | self._nodes
        for node in self._nodes.values():
            for _ in range(node.missing_engines):
                self._start_engine(node)
        if not self._engines:
            raise self._error or ModelError("the Ray cluster has no node with processors")

    def _has_head(self) -> bool:
        """Tell whether the cluster's head answers. Raises `PluginError` if it has not for long.

        Ray itself would wait, for a minute, and then end the program.
        """
        why = why_unreachable(self._ray.get_runtime_context().gcs_address)
        if why is None:
            self._head_answered = time.monotonic()
        elif time.monotonic() - self._head_answered > _HEAD_PATIENCE_S:
            raise PluginError(f"the head of the Ray cluster is gone: {why}", "start it, and this run, again")
        return why is None

    def _start_engine(self, node: Node) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        request = replace(
            self._batch_request, inputs=(), folder=None, cluster=None, jobs=1, threads=node.threads
        )
        on_node = NodeAffinitySchedulingStrategy(node.id, soft=False)
        actor_class = self._ray.remote(concurrency_groups={_CONTROL: 1})(EngineActor)
        actor = actor_class.options(num_cpus=node.threads, scheduling_strategy=on_node).remote(request)
        node.add_engine()
        self._n_started += 1
        number, loading = self._n_started, actor.load.remote(version("as2d"))
        self._engines[number] = RemoteEngine(number, node, actor, loading)

    def engine_started(self, engine: RemoteEngine, started: EngineStarted) -> None:
        """Note that an engine is loaded, and what it takes."""
        engine.loading = None
        engine.node.engine_started(started)
        self._refresh_soon()  # there may be room for more

    def remove(self, engine: RemoteEngine, error: As2dError) -> bool:
        """Remove an engine that is of no use any more; False if that was done before."""
        if engine.number not in self._engines:
            return False
        self._error = error
        self._kill(engine)
        engine.node.engine_lost(error)
        self._refresh_soon()
        return True

    def close(self) -> None:
        """End all engines; what they did can still be asked for."""
        ends = [engine.actor.end.options(concurrency_group=_CONTROL).remote() for engine in self.engines]
        if ends:
            self._ray.wait(ends, num_returns=len(ends), timeout=_END_PATIENCE_S)
        for engine in self.engines:
            self._kill(engine)
            engine.node.engine_ended()

    def _refresh_soon(self) -> None:
        self._refreshed = -_REFRESH_S

    def _kill(self, engine: RemoteEngine) -> None:
        del self._engines[engine.number]
        self._sums_before += engine.draft_sums
        self._ray.kill(engine.actor)
