"""What is handed to the engines of a cluster, and what comes back from them. All of it can be sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.resume import Content
from as2d_cli.batch.work import Item
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import Request, Span, Window, WindowResult
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import DraftPlan

RUN_WINDOWS = 8
"""Windows of a long file that are handed out at once, about four minutes and 15 MB."""
LONG_S = 1200.0
"""A file that claims to be longer is divided among engines."""
WHOLE = -1
"""Stands for all windows of a file that is not divided."""

Key: TypeAlias = tuple[int, int]
"""What is decoded once: a file's number, and a window's, or `WHOLE`."""
HeardWindows: TypeAlias = list[tuple[Window, WindowResult | None]]
"""Windows in order, those in which nobody speaks with their result."""


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Whole files, one after the other."""

    items: tuple[Item, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """What is decoded with it, in this order."""
        return tuple((item.number, WHOLE) for item in self.items)


@dataclass(frozen=True, slots=True)
class WindowPiece:
    """Some consecutive windows of a long file."""

    number: int
    indexes: tuple[int, ...]
    windows: Any
    """Ray's reference to the `HeardWindows` that these are among."""
    question: str | None = None
    language: str | None = None
    """What is spoken, as the first window has it."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """What is decoded with it, in this order."""
        return tuple((self.number, index) for index in self.indexes)


Piece: TypeAlias = FilePiece | WindowPiece


@dataclass(frozen=True, slots=True)
class Run:
    """Announces the next windows of a long file, which follow as `HeardWindows`."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class End:
    """A long file has been read, or could not be read on."""

    duration_s: float
    warnings: tuple[str, ...]
    error: As2dError | None
    content: Content | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """An engine is ready."""

    request: Request
    """What is asked of every window."""
    spec: TargetSpec
    budget: DraftPlan | None
    load_s: float
    peak_bytes: int
    """Most memory that the engine has taken so far, all of its processes together."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundLong:
    """A file was left alone, to be divided."""

    number: int


@dataclass(frozen=True, slots=True)
class DecodedFile:
    """A file is finished, or has failed."""

    number: int
    work: FileWork
    content: Content | None
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class DecodedWindow:
    """A window of a long file is decoded, or has failed."""

    number: int
    index: int
    span: Span
    result: WindowResult | None
    error: As2dError | None
    silent: bool
    is_drafting: bool
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Broken:
    """The engine cannot go on."""

    error: As2dError


Body: TypeAlias = FoundLong | DecodedFile | DecodedWindow | Broken


@dataclass(frozen=True, slots=True)
class Sent:
    """What an engine tells, and how it is."""

    body: Body
    is_drafter_lost: bool
    paused_windows: int
    notes: tuple[str, ...]
    """What the user may want to know, since the last time."""
