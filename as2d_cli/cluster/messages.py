"""What the driver of a run hands to the actors and splitters of a cluster, and what they send back.

The driver hands out pieces: whole files, or windows of a long file. An actor answers a piece with events.
A splitter reads a long file and sends its windows in chunks; a piece of windows refers to their chunk. All of
it can be pickled.
"""

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
from as2d_cli.profile.run_costs import DraftSums

CHUNK_WINDOWS = 8
"""Most windows of a chunk: about four minutes and 15 MB."""
LONG_S = 1200.0
"""A file that claims to be longer is divided among engines."""
WHOLE = -1
"""Stands for all windows of a file that is not divided."""

Key: TypeAlias = tuple[int, int]
"""What is decoded once: the number of a file, and the index of its window or `WHOLE`."""
Chunk: TypeAlias = list[tuple[Window, WindowResult | None]]
"""Consecutive windows of a long file; a window without speech comes with its result."""


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Whole files, decoded one after the other."""

    items: tuple[Item, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """What it decodes, in this order."""
        return tuple((item.number, WHOLE) for item in self.items)


@dataclass(frozen=True, slots=True)
class WindowPiece:
    """Some windows of one chunk of a long file."""

    number: int
    indexes: tuple[int, ...]
    chunk: Any
    """Ray's reference to the `Chunk`."""
    question: str | None = None
    language: str | None = None
    """The language of the file, once its first spoken window has decided it."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """What it decodes, in this order."""
        return tuple((self.number, index) for index in self.indexes)


Piece: TypeAlias = FilePiece | WindowPiece


@dataclass(frozen=True, slots=True)
class ChunkHeader:
    """From a splitter: its next message is a `Chunk` of these windows, which the driver need not fetch."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileEnd:
    """From a splitter: a long file has been read, or could not be read on."""

    duration_s: float
    warnings: tuple[str, ...]
    error: As2dError | None
    content: Content | None
    loudness: float
    """Of the loudest window; see `FileWork`."""


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """From an actor: its engine is loaded."""

    request: Request
    """What is asked of every window."""
    spec: TargetSpec
    plan: DraftPlan | None
    load_s: float
    peak_bytes: int
    """Most memory that the engine has taken so far, all of its processes together."""
    notes: tuple[str, ...]
    threads: int
    engines: int = 1


@dataclass(frozen=True, slots=True)
class LongFileFound:
    """A file of a piece is long: it was not decoded, and is to be divided."""

    number: int


@dataclass(frozen=True, slots=True)
class DecodedFile:
    """A whole file is decoded, or has failed."""

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
class EngineFailed:
    """The engine cannot go on."""

    error: As2dError


Event: TypeAlias = LongFileFound | DecodedFile | DecodedWindow | EngineFailed


@dataclass(frozen=True, slots=True)
class ActorMessage:
    """An event, and the state of the engine after it."""

    event: Event
    is_drafter_lost: bool
    draft_sums: DraftSums
    notes: tuple[str, ...]
    """What the user may want to know, since the last message."""
