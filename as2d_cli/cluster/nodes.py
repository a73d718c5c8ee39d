"""The nodes of a cluster, and how many engines each of them takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from as2d_cli.batch.report import NodeReport
from as2d_cli.cluster.messages import Loaded
from as2d_cli.domain.errors import As2dError
from as2d_cli.profile.plan import DraftPlan

MAX_DEATHS = 3
"""Engines that a node may lose without a result in between before it is given up."""
USUAL_THREADS = 4
"""Threads of an engine where nothing else is asked for: more of them gain less than more engines do."""
_MARGIN = 1.25
"""Memory that an engine comes to take while it works, beside what it took when it was loaded."""


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
    wanted: int = 1
    """Engines that it is to run: one, until that one tells what it takes."""
    running: int = 0
    deaths: int = 0
    error: As2dError | None = None
    """Why it is given up."""
    most: int = 0
    audio_s: float = 0.0
    budget: DraftPlan | None = None
    began: float | None = None
    stopped: float | None = None

    @property
    def lacks(self) -> int:
        """How many engines are to be started."""
        return max(0, self.wanted - self.running) if self.is_alive and self.error is None else 0

    def loaded(self, loaded: Loaded) -> None:
        """Note what an engine is like."""
        self.most = max(self.most, self.running)
        self.budget = loaded.budget
        self.began = self.began or time.monotonic()
        by_memory = int(self.memory_bytes / (_MARGIN * loaded.peak_bytes)) if loaded.peak_bytes else self.cpus
        self.wanted = max(1, min(self.cpus // self.threads, by_memory))

    def lost(self, error: As2dError) -> None:
        """Note that an engine is gone; `error` is why the node is given up if that goes on."""
        self.ended()
        self.deaths += 1
        if self.deaths >= MAX_DEATHS:
            self.error = error

    def ended(self) -> None:
        """Note that an engine is no more."""
        self.running -= 1
        self.stopped = None if self.running else time.monotonic()

    def heard(self, seconds: float) -> None:
        """Note that it decoded so much audio."""
        self.audio_s += seconds
        self.deaths = 0 if seconds else self.deaths

    def report(self) -> NodeReport:
        """Return what it has done so far."""
        until = self.stopped if self.stopped is not None and not self.running else time.monotonic()
        wall_s = until - self.began if self.began is not None else 0.0
        return NodeReport(self.name, self.most, self.threads, self.audio_s, wall_s, self.budget)


def nodes_of(rows: list[dict[str, Any]], threads: int | None) -> list[Node]:
    """Return the nodes in what `ray.nodes()` tells that are alive and have processors to give.

    `threads` are those asked for, for each engine.
    """
    found = []
    for row in rows:
        resources = row["Resources"] if row["Alive"] else {}
        cpus = int(resources.get("CPU", 0))
        if cpus:
            name = row.get("NodeManagerHostname") or row["NodeManagerAddress"]
            memory = float(resources.get("memory", "inf"))
            found.append(Node(row["NodeID"], name, cpus, memory, min(threads or USUAL_THREADS, cpus)))
    return found
