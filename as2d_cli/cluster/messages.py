"""What is handed to the engines of a cluster, and what comes back from them. All of it can be sent."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from io import BytesIO
from typing import Any, TypeAlias

from as2d_cli.batch.inputs import Input
from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.resume import Content, Stamp, content_of
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import Request, Span, Window, WindowResult
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import Budget

RUN_WINDOWS = 8
"""Windows of a long file that are handed out at once, about four minutes and 15 MB."""
LONG_S = 1200.0
"""A file that claims to be longer is divided among engines."""
WHOLE = -1
"""Stands for all windows of a file that is not divided."""

Key: TypeAlias = tuple[int, int]
"""What is decoded once: a file's number, and a window's, or `WHOLE`."""
Decoded: TypeAlias = tuple[FileWork, Content | None]
"""A file that is finished, and what it held, where that is wanted and known."""
HeardWindows: TypeAlias = list[tuple[Window, WindowResult | None]]
"""Windows in order, those in which nobody speaks with their result."""


class Held(BytesIO):
    """Standard input, where there is none."""

    name = "stdin"


@dataclass(frozen=True, slots=True)
class Item:
    """A file to decode."""

    number: int
    """Its place among the files of the run."""
    input: Input
    wants_content: bool
    """Whether to tell what it held."""
    _: KW_ONLY
    given: str = ""
    """What it goes by in messages, if that is not its path."""
    question: str | None = None
    """What is asked about it; None: it is to be written down."""
    bytes: bytes | None = None
    """What the input's stream held: that is not to be had elsewhere."""

    def named(self, error: As2dError) -> As2dError:
        """Return an error of this file as it is told where the file was given."""
        rest = error.message.removeprefix(self.input.name)
        is_about_it = self.given and rest != error.message
        return type(error)(self.given + rest, error.hint) if is_about_it else error

    def opened(self) -> Input:
        """Return the input as it can be read here."""
        if self.bytes is None:
            return self.input
        return Input(self.input.path, self.input.subfolder, Held(self.bytes))

    def content(self, stamp: Stamp | None, work: FileWork) -> Content | None:
        """Return what it held, if that is wanted and known; it had this `stamp` before `work` read it."""
        wanted = self.wants_content and work.error is None
        return content_of(self.opened(), stamp, work.sha256) if wanted else None


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
    budget: Budget | None
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
