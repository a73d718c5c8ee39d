"""The engines of a run, on the nodes of its cluster: started where there is room, ended, and counted."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from as2d_cli.batch.report import NodeReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.cluster.actor import EngineActor
from as2d_cli.cluster.messages import FilePiece, Loaded, Piece, Sent
from as2d_cli.cluster.nodes import Node, nodes_of
from as2d_cli.cluster.start import no_answer
from as2d_cli.domain.errors import As2dError, ModelError, PluginError

_LOOK_S = 2.0
"""How often to look for nodes that came or went."""
_HEAD_S = 20.0
"""How long the cluster's head may be gone."""
_END_S = 2.0
"""How long engines are waited for that are to be killed: some may not have begun."""
_BESIDE = "beside"
"""Ray's group of calls that do not wait for those before them."""


@dataclass(eq=False)
class Engine:
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

    def begin(self, piece: Piece) -> None:
        """Give it a piece, after those that it has."""
        if isinstance(piece, FilePiece):
            self.sending.append(self.actor.files.remote(*piece.items))
        else:  # Ray hands over what an argument of its own refers to, not what is inside of one
            self.sending.append(self.actor.windows.remote(replace(piece, windows=None), piece.windows))

    def told(self, sent: Sent) -> None:
        """Note how it is."""
        self.is_drafter_lost, self.paused_windows = sent.is_drafter_lost, sent.paused_windows


class EnginePool:
    """All engines; nodes may come and go."""

    def __init__(self, ray: Any, asked: BatchRequest) -> None:  # noqa: ANN401 - a module
        """Start nothing yet."""
        self._ray, self._asked = ray, asked
        self._nodes: dict[str, Node] = {}
        self._engines: dict[int, Engine] = {}
        self._started = 0
        self._looked = -_LOOK_S
        self._answered = time.monotonic()
        self._error: As2dError | None = None
        self._paused_before = 0  # by engines that are gone

    @property
    def engines(self) -> list[Engine]:
        """Those that are loaded, or about to be."""
        return list(self._engines.values())

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

    def recruit(self) -> None:
        """Start engines where there is room. Raises why there are none, if there is no hope of any."""
        if time.monotonic() - self._looked < _LOOK_S:
            return
        self._looked = time.monotonic()
        if not self._has_head():
            return
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

    def _has_head(self) -> bool:
        """Tell whether the cluster's head answers. Raises `PluginError` if it has not for long.

        Ray itself would wait, for a minute, and then end the program.
        """
        why = no_answer(self._ray.get_runtime_context().gcs_address)
        if why is None:
            self._answered = time.monotonic()
        elif time.monotonic() - self._answered > _HEAD_S:
            raise PluginError(f"the head of the Ray cluster is gone: {why}", "start it, and this run, again")
        return why is None

    def _start(self, node: Node) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        asked = replace(self._asked, inputs=(), folder=None, cluster=None, threads=node.threads)
        there = NodeAffinitySchedulingStrategy(node.id, soft=False)
        actor = self._ray.remote(concurrency_groups={_BESIDE: 1})(EngineActor).options(
            num_cpus=node.threads, scheduling_strategy=there
        )
        actor = actor.remote(asked)
        self._started += 1
        node.running += 1
        self._engines[self._started] = Engine(self._started, node, actor, actor.load.remote(version("as2d")))

    def loaded(self, engine: Engine, loaded: Loaded) -> None:
        """Note that an engine is ready, and what it is like."""
        engine.loading = None
        engine.node.loaded(loaded)
        self._looked = -_LOOK_S  # there may be room for more

    def lose(self, engine: Engine, error: As2dError) -> bool:
        """Note that an engine is of no use any more; tell whether that is new."""
        if engine.number not in self._engines:
            return False
        self._error = error
        self._end(engine)
        engine.node.lost(error)
        self._looked = -_LOOK_S
        return True

    def close(self) -> None:
        """End all engines; what they did can still be asked for."""
        ends = [engine.actor.end.options(concurrency_group=_BESIDE).remote() for engine in self.engines]
        if ends:
            self._ray.wait(ends, num_returns=len(ends), timeout=_END_S)
        for engine in self.engines:
            self._end(engine)
            engine.node.ended()

    def _end(self, engine: Engine) -> None:
        del self._engines[engine.number]
        self._paused_before += engine.paused_windows
        self._ray.kill(engine.actor)
