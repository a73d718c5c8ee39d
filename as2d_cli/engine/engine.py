"""The engine as callers see it: a context manager that decodes windows with a target and perhaps a drafter.

`pair` starts, restarts and ends the processes; `scheduler` takes one run of windows through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.types import FeatureSpec
from as2d_cli.engine.messages import DecodeSettings, ModelRef, Note, Progress
from as2d_cli.engine.pair import Pair
from as2d_cli.engine.scheduler import Guard, Ledger, Scheduler, WindowOutcome, WindowTask


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which models run, and how."""

    target: ModelRef
    drafter: ModelRef | None
    decode: DecodeSettings = field(default_factory=DecodeSettings)


class Engine:
    """A target and perhaps a drafter at work. Use as a context manager."""

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
        self.pair = Pair(settings.target, settings.drafter, settings.decode, note)
        """The processes, for whoever measures them while nothing is in work."""

    def __enter__(self) -> Engine:
        """Load both models side by side. Raises `ModelError` or `PluginError` if that fails."""
        try:
            self.pair.start()
        except BaseException:
            self.close(at_once=True)
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stop both processes and free the shared memory."""
        self.close(at_once=error is not None)

    def close(self, *, at_once: bool = False) -> None:
        """Stop everything; safe to call twice."""
        self.pair.close(at_once=at_once)

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
        return self.pair.drafter is not None or self.pair.drafts_inside

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes at work: the target's, then the drafter's if there is one."""
        workers = [process.worker for process in (self.pair.target, self.pair.drafter) if process]
        return tuple(worker.process.pid for worker in workers if worker.process.pid)

    def decode_as(self, settings: DecodeSettings) -> None:
        """Decode windows by these settings from now on, if their task has none of its own."""
        self._ledger.decode = settings

    def share_threads(self, decode_threads: int | None) -> None:
        """Run the target's passes on so many threads (None: all) while it has drafts.

        Nothing may be in work. Raises `ModelError` if the target cannot be loaded anew.
        """
        self.pair.share_threads(decode_threads)

    def drop_drafter(self) -> None:
        """Go on without the drafter, with all threads, and free its memory. Nothing may be in work."""
        self.pair.drop_drafter()

    def run(
        self, tasks: Iterable[WindowTask], *, drafted: bool = True, guard: Guard | None = None
    ) -> Iterator[WindowOutcome]:
        """Decode windows; yield one outcome per task, in order.

        Tasks are taken a few ahead of the one in work. With `drafted=False` the drafter is left idle,
        which is plain target-only decoding; a `guard` decides it from window to window. Raises
        `ModelError` if the target cannot be kept alive.
        """
        return Scheduler(self.pair, self._ledger, self._tell, guard).run(tasks, drafted=drafted)

    def _tell(self, message: Progress | Note) -> None:
        if isinstance(message, Note):
            self._note(message.note)
        else:
            self._progress(message)
