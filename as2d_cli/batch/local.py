"""Decodes the files of a run with one engine on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from as2d_cli.batch.display import Display
from as2d_cli.batch.report import NodeReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.resume import Stamp, stamp_of
from as2d_cli.batch.session import Session, open_session
from as2d_cli.batch.work import Decoded, Heard, Item
from as2d_cli.domain.types import Request
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.profile.run_costs import DraftSums


class LocalExecutor:
    """An `Executor` on a session, which may be kept from run to run."""

    nodes: tuple[NodeReport, ...] = ()

    def __init__(self, session: Session) -> None:
        """Decode with models that are loaded."""
        self._session = session
        self.comparison = Comparison()

    @property
    def plan(self) -> DraftPlan | None:
        """What was chosen by this device's profile, if that was left to it."""
        return self._session.plan

    @property
    def is_drafter_lost(self) -> bool:
        """Whether the engine goes on without its drafter although nobody chose that."""
        return self._session.is_drafter_lost

    @property
    def draft_sums(self) -> DraftSums:
        """Windows decoded with drafts and without."""
        return self._session.draft_sums

    def await_first(self) -> tuple[Session, float]:
        """Return the session, and how long loading it took, seconds."""
        return self._session, self._session.load_s

    def run(self, items: Sequence[Item], heard: Heard) -> Iterator[Decoded]:
        """Yield each file once it is finished, in order. Raises as `Pipeline.events`."""
        for question, same in groupby(items, lambda item: item.question):
            yield from self._run(list(same), self._session.request_for(question), heard)

    def _run(self, items: Sequence[Item], request: Request, heard: Heard) -> Iterator[Decoded]:
        stamps: dict[int, Stamp | None] = {}

        def sources() -> Iterator[Path | BinaryIO]:
            for number, item in enumerate(items):
                stamps[number] = stamp_of(item.input)
                yield item.input.rewound()

        compared = self._session.compared
        for work, window in self._session.pipeline.events(sources(), request):
            item = items[work.number]
            if window is not None:
                silent = window.task.known_result is not None
                heard(item.number, window.task.window.duration_s, window.result, silent=silent)
                self.comparison += compared.taken(item.number) if compared else Comparison()
                continue
            content = item.content(stamps.pop(work.number), work)
            work.number = item.number
            yield work, content


@contextmanager
def local_executor(asked: BatchRequest, display: Display) -> Iterator[LocalExecutor]:
    """Load the models of a request for one run. Raises as `open_session`."""
    with open_session(asked, display) as session:
        yield LocalExecutor(session)
