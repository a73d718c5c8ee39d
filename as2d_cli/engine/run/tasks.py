"""What an engine is given to decode, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import DecodeStats, Request, Window, WindowResult
from as2d_cli.engine.messages import DecodeSettings, Job
from as2d_cli.engine.rescue.care import Care


@dataclass(frozen=True, slots=True, eq=False)
class WindowTask:
    """A window to decode. Tasks of one file share `group` and come one after another."""

    group: int
    window: Window
    request: Request
    known_result: WindowResult | None = None
    """The result, if it is known without any model; the task then only keeps its place among the others."""
    decode: DecodeSettings | None = None
    """How to decode it; None: as the engine's settings say."""
    traced: bool = False
    """Whether its time line is wanted."""
    care: Care | None = None
    """What is done about its text if that is doubtful; None: nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowOutcome:
    """What became of a task: a result, or the error that it failed with."""

    task: WindowTask
    result: WindowResult | None
    error: As2dError | None = None


class Guard(Protocol):
    """Decides, from window to window, whether drafts are worth their time; see `profile.guard`."""

    def should_draft(self) -> bool:
        """Tell whether the window that is handed out next is to be drafted."""

    def observe(self, stats: DecodeStats, *, drafted: bool, audio_s: float) -> bool:
        """Note what a window with so much audio took; tell whether drafting ends with it."""


@dataclass(slots=True, eq=False)
class Work:
    """A task that was taken, and whose outcome has not been yielded."""

    task: WindowTask
    job: Job | None = None
    """What a pair was handed; None: nothing yet, or its result is known without one."""
    outcome: WindowOutcome | None = None
    """None while it is in work."""

    @property
    def is_open(self) -> bool:
        """Whether the target was left to find out the language."""
        return self.job is not None and self.job.request.language is None
