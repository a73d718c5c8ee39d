"""The engine as callers see it: a context manager that decodes windows with a target and perhaps a drafter.

`pair` starts, restarts and ends the processes; `run` takes one run of windows through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.types import FeatureSpec
from as2d_cli.engine.messages import DecodeSettings, ModelRef, Note, Progress
from as2d_cli.engine.pair import Pair
from as2d_cli.engine.run.lane import Ledger, RunSettings
from as2d_cli.engine.run.scheduler import Scheduler
from as2d_cli.engine.run.tasks import Guard, WindowOutcome, WindowTask


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which models run, and how."""

    target: ModelRef
    drafter: ModelRef | None
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    pairs: int = 1
    """How many targets, each with a drafter if there is one, share the windows."""


class Engine:
    """A target and perhaps a drafter at work, or several of them side by side. Use as a context manager."""

    def __init__(
        self,
        settings: EngineSettings,
        *,
        note: Callable[[str], None] = lambda _: None,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        """Nothing starts before the context is entered. `note` takes warnings for the user."""
        self._note = note
        self._progress = progress
        self._ledger = Ledger()
        self._pairs = [
            Pair(settings.target, settings.drafter, settings.decode, note) for _ in range(settings.pairs)
        ]

    def __enter__(self) -> Engine:
        """Load all models side by side. Raises `ModelError` or `PluginError` if that fails."""
        try:
            for pair in self._pairs:
                pair.start()
            for pair in self._pairs:
                pair.begin()
        except BaseException:
            self.close(at_once=True)
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stop both processes and free the shared memory."""
        self.close(at_once=error is not None)

    def close(self, *, at_once: bool = False) -> None:
        """Stop everything; safe to call twice."""
        for pair in self._pairs:
            pair.close(at_once=at_once)

    @property
    def pair(self) -> Pair:
        """The processes, the first if there are several: for who measures them while nothing is in work."""
        return self._pairs[0]

    @property
    def target_spec(self) -> TargetSpec:
        """Facts about the loaded target."""
        return self.pair.target_spec

    @property
    def features(self) -> tuple[FeatureSpec, FeatureSpec]:
        """What the target hears of a window, and what the drafter does (the same if there is none)."""
        layout = self.pair.slots.layout
        return layout.target, layout.drafter or layout.target

    @property
    def is_drafting(self) -> bool:
        """Whether there is a drafter, and it has not been given up."""
        return any(pair.drafter is not None or pair.drafts_inside for pair in self._pairs)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes at work: of each pair the target's, then the drafter's if there is one."""
        processes = [process for pair in self._pairs for process in (pair.target, pair.drafter)]
        workers = [process.worker for process in processes if process]
        return tuple(worker.process.pid for worker in workers if worker.process.pid)

    def decode_as(self, settings: DecodeSettings) -> None:
        """Decode windows by these settings from now on, if their task has none of its own."""
        self._ledger.decode = settings

    def share_threads(self, decode_threads: int | None) -> None:
        """Run the target's passes on so many threads (None: all) while it has drafts.

        Nothing may be in work. Raises `ModelError` if the target cannot be loaded anew.
        """
        for pair in self._pairs:
            pair.share_threads(decode_threads)

    def drop_drafter(self) -> None:
        """Go on without the drafter, with all threads, and free its memory. Nothing may be in work."""
        for pair in self._pairs:
            pair.drop_drafter()

    def run(
        self, tasks: Iterable[WindowTask], *, drafted: bool = True, guard: Guard | None = None
    ) -> Iterator[WindowOutcome]:
        """Decode windows; yield one outcome per task, in order.

        Tasks are taken a few ahead of the one in work. With `drafted=False` the drafter is left idle,
        which is plain target-only decoding; a `guard` decides it from window to window. Raises
        `ModelError` if the target cannot be kept alive.
        """
        return Scheduler(self._pairs, RunSettings(self._ledger, self._tell, guard, drafted)).run(tasks)

    def _tell(self, message: Progress | Note) -> None:
        if isinstance(message, Note):
            self._note(message.note)
        else:
            self._progress(message)
