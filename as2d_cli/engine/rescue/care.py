"""What a run asks for where a text may be wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Care:
    """What is done about a text that may be wrong or have parts missing."""

    listens: bool
    """Whether speech without words is looked for."""
    rescues: bool
    """Whether doubtful windows are decoded again; otherwise they are only told of."""
