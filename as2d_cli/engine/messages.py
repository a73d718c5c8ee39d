"""What the main process and its workers tell each other: what to load and to decode, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from as2d_cli.decoding import AlignMode, Controller, FixedBudget, Hazard, Policy, StepCosts
from as2d_cli.decoding.controller import MAX_CANDIDATES
from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import Request, WindowResult
from as2d_cli.engine.measure import DraftCosts, TargetCosts
from as2d_cli.engine.rescue.care import Care
from as2d_cli.engine.slots import SlotLayout
from as2d_cli.models.registry import ModelEntry


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A converted model and how to load it."""

    entry: ModelEntry
    path: Path
    threads: int
    decode_threads: int | None = None
    """Threads of a target's decode loop, where these are to be fewer: a drafter needs cores, too."""


@dataclass(frozen=True, slots=True)
class TargetReady:
    """The target is loaded."""

    spec: TargetSpec
    without_drafter: As2dError | None = None
    """Why the drafter that was to run in the target's process does not."""


@dataclass(frozen=True, slots=True)
class DrafterReady:
    """The drafter is loaded."""

    spec: DrafterSpec


@dataclass(frozen=True, slots=True)
class Attach:
    """Where the slots are, and the languages drafts are useful for (None: all)."""

    name: str
    layout: SlotLayout
    draft_languages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One window to decode or to draft."""

    id: int
    slot: int
    epoch: int
    request: Request
    duration_s: float
    group: int
    """Windows of one file share a group, and its language."""
    drafted: bool
    """Whether a draft of this window is being written."""
    decode: DecodeSettings | None = None
    """How to decode it; None: as the worker was told when it began."""
    traced: bool = False
    """Whether its time line is wanted."""
    index: int = 0
    """Place of the window in its group."""
    care: Care | None = None
    """What is done about its text if that is doubtful; None: nothing. The slot then has its audio."""
    n_samples: int = 0
    """Length of that."""


@dataclass(frozen=True, slots=True)
class ForgetJobs:
    """The jobs sent before this are no longer wanted, but the one in work may be finished."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The window in work: tokens and target passes so far."""

    id: int
    tokens: int
    steps: int


@dataclass(frozen=True, slots=True)
class Done:
    """A decoded window, or a finished draft (without a result)."""

    id: int
    result: WindowResult | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A window, or with id -1 the loading of the model, went wrong."""

    id: int
    error: As2dError


@dataclass(frozen=True, slots=True)
class Note:
    """Something the user may want to know."""

    note: str


@dataclass(frozen=True, slots=True)
class Measure:
    """Ask a worker to time its model for about so long."""

    seconds: float
    rounds: int = 2
    """How often to measure everything, at least."""
    warm: bool = False
    """Whether the model has been at work."""
    until_told: bool = False
    """Whether to go on until the next message: a model measured beside it must never be alone."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a worker measured."""

    costs: TargetCosts | DraftCosts


Message: TypeAlias = TargetReady | DrafterReady | Progress | Note | Done | Failed | Measured
LOADING = -1


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """How the target uses drafts."""

    draft_tokens: int | None = None
    """Candidates per step; None lets the controller choose."""
    align: AlignMode = "hybrid"
    cap: int = MAX_CANDIDATES
    """Most candidates that the controller may choose."""
    idle_ms: Mapping[int, float] = field(default_factory=dict)
    busy_ms: Mapping[int, float] = field(default_factory=dict)
    """What is known of a pass's cost by row count, with the drafter idle and at work."""
    name: str = ""
    """Windows with one name share a policy: the first one's, with what it learns from all of them."""

    def policy(self, prior: Sequence[float] | None = None) -> Policy:
        """Return a new policy, which begins with counts of a `Hazard`, or has learned nothing yet."""
        if self.draft_tokens is not None:
            return FixedBudget(self.draft_tokens)
        return Controller(StepCosts(self.idle_ms, self.busy_ms), Hazard(prior), self.cap)
