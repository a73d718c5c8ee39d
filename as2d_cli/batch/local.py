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
from as2d_cli.batch.work import Decoded, Item, OnWindow
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
        """What both ways of decoding came to so far, if they are compared."""
        self._unreadable: set[int] = set()

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

    def run(self, items: Sequence[Item], on_window: OnWindow) -> Iterator[Decoded]:
        """Yield each file once it is finished, in order. Raises as `Pipeline.events`.

        A recording that cannot be opened is not opened again for another question.
        """
        for question, same in groupby(items, lambda item: item.question):
            readable = [item for item in same if id(item.input) not in self._unreadable]
            yield from self._run(readable, self._session.request_for(question), on_window)

    def _run(self, items: Sequence[Item], request: Request, on_window: OnWindow) -> Iterator[Decoded]:
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
                on_window(item.number, window.task.window.span.new_s, window.result, silent=silent)
                if compared:
                    self.comparison += compared.taken(item.number)
                continue
            if work.error is not None and not work.handed_out:
                self._unreadable.add(id(item.input))
            content = item.content(stamps.pop(work.number), work)
            work.number = item.number
            yield work, content


@contextmanager
def start_local(asked: BatchRequest, display: Display) -> Iterator[LocalExecutor]:
    """Load the models of a request for one run. Raises as `open_session`."""
    with open_session(asked, display) as session:
        yield LocalExecutor(session)
