"""Drafters that cost next to nothing: they run in the target's process, on what is there already.

Such a drafter gives its whole draft when a window has been encoded, before the target's first pass. It
may look at the request, at what the target's encoder made of the audio and at finished windows, and
never at the text of the window in work: it is as decoupled from the target as one in a process of its own.
What it takes is the target's time, and a crash of it is the target's: a drafter that computes for longer
than a target pass or two, or may crash, belongs into the other process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from as2d_cli.decoding.protocols import TargetSession
from as2d_cli.domain.types import Request

States: TypeAlias = NDArray[np.float32]
"""What a target's encoder made of a window, shape (n_positions, width)."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A finished window: its file, its place there and the target's tokens, the end included."""

    group: int
    index: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DraftView:
    """All that an inner drafter sees of a window."""

    group: int
    """Number of the file in the batch."""
    index: int
    """Place of the window in its file, from 0."""
    request: Request
    """What the target is asked."""
    states: States | None
    """Encoder output, valid only now; None if the target does not show it."""
    earlier: Sequence[Earlier]
    """Finished windows of the batch that come before this one, in their order."""


class InnerDrafter(Protocol):
    """A loaded drafter that runs in the target's process."""

    @property
    def languages(self) -> tuple[str, ...] | None:
        """Languages it drafts usefully; None means any."""

    @property
    def passages(self) -> bool:
        """Whether a draft is a collection of passages to be searched (see `PassageAligner`), not one text."""

    def draft(self, view: DraftView) -> Sequence[int]:
        """Return the draft in the target's vocabulary; an end id closes the text, or each passage."""


@runtime_checkable
class ShowsStates(Protocol):
    """A `TargetSession` that lets inner drafters read the encoder's output."""

    @property
    def states(self) -> States:
        """Encoder output of the window, shape (n_positions, width); valid as long as the session."""


def states_of(session: TargetSession) -> States | None:
    """Return the encoder output that a session shows, if it does."""
    return session.states if isinstance(session, ShowsStates) else None
