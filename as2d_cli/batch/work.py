"""The files of a run as they are handed to whatever decodes them, and as they come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import KW_ONLY, dataclass, field
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Protocol, TypeAlias

from as2d_cli.audio.stream import open_audio
from as2d_cli.batch.display import Display
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.report import NodeReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.resume import Content, Stamp, content_of
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import WINDOW_S, DecodeStats, Request, Transcript, WindowResult
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.profile.run_costs import DraftSums
from as2d_cli.system.addresses import address

Decoded: TypeAlias = tuple[FileWork, Content | None]
"""A file that is finished, and what it held, where that is wanted and known."""


class StdinBytes(BytesIO):
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
        return Input(self.input.path, self.input.subfolder, StdinBytes(self.bytes))

    def content(self, stamp: Stamp | None, work: FileWork) -> Content | None:
        """Return what it held, if that is wanted and known; it had this `stamp` before `work` read it."""
        wanted = self.wants_content and work.error is None
        return content_of(self.opened(), stamp, work.sha256) if wanted else None


class OnWindow(Protocol):
    """Is told of every window that comes back."""

    def __call__(self, number: int, seconds: float, result: WindowResult | None, *, silent: bool) -> None:
        """Take a window of the file `number`."""


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one source: a transcript, an error, or neither if it was skipped."""

    source: Path
    transcript: Transcript | None = None
    error: As2dError | None = None
    stats: DecodeStats = field(default_factory=DecodeStats)
    warnings: tuple[str, ...] = ()
    written: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    """Outputs that were there before and were left alone."""
    notes: tuple[str, ...] = ()
    """Why, for those that are not known to be what was asked for."""

    @property
    def is_skipped(self) -> bool:
        """Whether nothing was left to do."""
        return self.transcript is None and self.error is None


class Started(Protocol):
    """What an executor tells of itself once its first engine is ready."""

    @property
    def request(self) -> Request:
        """What is asked of every window."""

    @property
    def engines(self) -> int:
        """How many engines share the windows here."""

    @property
    def threads(self) -> int:
        """Of each engine's target."""


class Executor(Protocol):
    """Decodes the files of a run: one engine in this process's care, or many on a cluster."""

    @property
    def plan(self) -> DraftPlan | None:
        """What was chosen by this device's profile, if that was left to it and is the same everywhere."""

    @property
    def comparison(self) -> Comparison:
        """What both ways of decoding came to so far, if they are compared."""

    @property
    def is_drafter_lost(self) -> bool:
        """Whether some engine goes on without its drafter although nobody chose that."""

    @property
    def draft_sums(self) -> DraftSums:
        """Windows decoded with drafts and without."""

    @property
    def nodes(self) -> tuple[NodeReport, ...]:
        """What each node of a cluster has done so far; none where there is no cluster."""

    def await_first(self) -> tuple[Started, float]:
        """Wait for the first engine; return what it tells of itself, and how long that took, seconds.

        Raises `ModelError`, `PluginError` or `RequestError` if none can be had.
        """

    def run(self, items: Sequence[Item], on_window: OnWindow) -> Iterator[Decoded | None]:
        """Yield each file once it is finished, in any order; None when there is no other yet.

        Raises as `await_first`, also if no engine is left.
        """


def windows_in(inputs: Iterable[Input], most: int) -> int:
    """Return how many windows there are to decode, by what files say of their length; no more than `most`.

    What does not say counts as one window.
    """
    windows = 0
    for given in inputs:
        if windows >= most:
            break
        windows += max(1, ceil(_stated_s(given) / WINDOW_S))
    return min(windows, most)


def _stated_s(given: Input) -> float:
    if given.error is not None or given.stream is not None or address(given.path) is not None:
        return 0.0
    try:
        with closing(open_audio(given.path)) as stream:
            return stream.expected_s or 0.0
    except As2dError:  # told when its turn comes
        return 0.0


StartExecutor: TypeAlias = Callable[[BatchRequest, Display], AbstractContextManager[Executor]]
"""Starts what decodes a run, and ends it when the run is over."""
