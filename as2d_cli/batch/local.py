"""A run's files through one engine of this process; as `cluster.fleet` has them through many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from as2d_cli.batch.display import Display
from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.report import NodeReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.resume import Stamp, stamp_of
from as2d_cli.batch.session import Ready, ready
from as2d_cli.batch.work import Decoded, Heard, Item
from as2d_cli.engine.comparison import Comparison
from as2d_cli.engine.scheduler import WindowOutcome
from as2d_cli.profile.plan import DraftPlan


class LocalExecutor:
    """One engine at work. What it can be asked, a `RayExecutor` can be asked, too."""

    nodes: tuple[NodeReport, ...] = ()

    def __init__(self, ready: Ready) -> None:
        """Decode with an engine that is ready for what is asked."""
        self._ready = ready

    @property
    def plan(self) -> DraftPlan | None:
        """What was chosen by this device's profile, if that was left to it."""
        return self._ready.plan

    @property
    def comparison(self) -> Comparison:
        """What both ways of decoding came to so far, if they are compared."""
        compared = self._ready.compared
        return compared.found if compared else Comparison()

    @property
    def is_drafter_lost(self) -> bool:
        """Whether the engine goes on without its drafter although nobody chose that."""
        return self._ready.is_drafter_lost

    @property
    def paused_windows(self) -> int:
        """Windows decoded without drafts because these had come to cost time."""
        return self._ready.paused_windows

    def await_first(self) -> tuple[Ready, float]:
        """Return what the engine is ready for, and how long that took, seconds."""
        return self._ready, self._ready.load_s

    def run(self, items: Sequence[Item], heard: Heard) -> Iterator[Decoded]:
        """Yield each file once it is finished, in order. Raises as `Pipeline.run`."""
        stamps: dict[int, Stamp | None] = {}

        def opened() -> Iterator[Path | BinaryIO]:
            for number, item in enumerate(items):
                stamps[number] = stamp_of(item.input)
                yield item.input.source

        def window(work: FileWork, outcome: WindowOutcome) -> None:
            task = outcome.task
            heard(work.number, task.window.duration_s, outcome.result, silent=task.known_result is not None)

        for work in self._ready.pipeline(self._ready.request, window).run(opened()):
            yield work, items[work.number].content(stamps.pop(work.number), work)


@contextmanager
def local_executor(asked: BatchRequest, display: Display) -> Iterator[LocalExecutor]:
    """Have an engine for what is asked. Raises as `ready`."""
    with ready(asked, display) as one:
        yield LocalExecutor(one)
