"""The nodes of a cluster, and how many engines each of them takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from as2d_cli.batch.report import NodeReport
from as2d_cli.cluster.messages import EngineStarted
from as2d_cli.domain.errors import As2dError
from as2d_cli.profile.plan import DraftPlan

MAX_DEATHS = 3
"""Engines that a node may lose without a result in between before it is given up."""
USUAL_THREADS = 4
"""Threads of an engine where nothing else is asked for: more of them gain less than more engines do."""
_MARGIN = 1.25
"""What an engine takes while it works, as a multiple of what it took when it was loaded."""


@dataclass
class Node:
    """One node, as far as this run is concerned."""

    id: str
    name: str
    cpus: int
    memory_bytes: float
    threads: int
    """Of each engine's target."""
    is_alive: bool = True
    engines: int = 0
    """Engines loaded or loading."""
    wanted_engines: int = 1
    """Engines that it is to run: one, until that one tells what it takes."""
    most_engines: int = 0
    deaths: int = 0
    """Engines lost since the last result."""
    error: As2dError | None = None
    """Why it is given up."""
    audio_s: float = 0.0
    plan: DraftPlan | None = None
    began: float | None = None
    stopped: float | None = None

    @property
    def missing_engines(self) -> int:
        """How many engines are to be started."""
        return max(0, self.wanted_engines - self.engines) if self.is_alive and self.error is None else 0

    def add_engine(self) -> None:
        """Count an engine that begins to load."""
        self.engines += 1

    def engine_started(self, started: EngineStarted) -> None:
        """Decide how many engines there is room for, from what this one takes."""
        self.most_engines = max(self.most_engines, self.engines)
        self.plan = started.plan
        self.began = self.began or time.monotonic()
        peak_bytes = started.peak_bytes
        by_memory = int(self.memory_bytes / (_MARGIN * peak_bytes)) if peak_bytes else self.cpus
        self.wanted_engines = max(1, min(self.cpus // self.threads, by_memory))

    def engine_lost(self, error: As2dError) -> None:
        """Note that an engine died; `error` is why the node is given up if that goes on."""
        self.engine_ended()
        self.deaths += 1
        if self.deaths >= MAX_DEATHS:
            self.error = error

    def engine_ended(self) -> None:
        """Note that an engine is no more."""
        self.engines -= 1
        self.stopped = None if self.engines else time.monotonic()

    def add_audio(self, seconds: float) -> None:
        """Count new audio that it decoded."""
        self.audio_s += seconds
        self.deaths = 0 if seconds else self.deaths

    def report(self) -> NodeReport:
        """Return what it has done so far."""
        until = self.stopped if self.stopped is not None and not self.engines else time.monotonic()
        wall_s = until - self.began if self.began is not None else 0.0
        return NodeReport(self.name, self.most_engines, self.threads, self.audio_s, wall_s, self.plan)


def nodes_of(rows: list[dict[str, Any]], threads: int | None) -> list[Node]:
    """Return those nodes of `ray.nodes()` that are alive and have processors to give.

    `threads` are those of each engine, None: as many as usual.
    """
    nodes = []
    for row in rows:
        resources = row["Resources"] if row["Alive"] else {}
        cpus = int(resources.get("CPU", 0))
        if cpus:
            name = row.get("NodeManagerHostname") or row["NodeManagerAddress"]
            memory = float(resources.get("memory", "inf"))
            nodes.append(Node(row["NodeID"], name, cpus, memory, min(threads or USUAL_THREADS, cpus)))
    return nodes
