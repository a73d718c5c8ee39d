"""The interface of audio readers, whichever library does the reading, and the errors they raise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.errors import visible

DEFAULT_LAYOUTS = {
    1: ("FC",),
    2: ("FL", "FR"),
    3: ("FL", "FR", "FC"),
    4: ("FL", "FR", "BL", "BR"),
    5: ("FL", "FR", "FC", "BL", "BR"),
    6: ("FL", "FR", "FC", "LFE", "BL", "BR"),
    7: ("FL", "FR", "FC", "LFE", "BC", "SL", "SR"),
    8: ("FL", "FR", "FC", "LFE", "BL", "BR", "SL", "SR"),
}
"""The order of channels in WAV and FLAC, by their number (RFC 9639, section 9.1.3), in FFmpeg's names."""


class Chunk(NamedTuple):
    """Some audio as it is stored."""

    samples: NDArray[np.float32]
    """Shape (n_frames, n_channels)."""
    rate: int
    """In Hz."""
    layout: tuple[str, ...] = ()
    """Names of the channels, as FFmpeg or libsndfile has them; empty if they are not known."""


@dataclass(slots=True)
class Gaps:
    """Where the times in a file leave out some audio."""

    count: int = 0
    first_s: float = 0.0
    """Where the first one begins, seconds from the start."""
    total_s: float = 0.0


class Track(NamedTuple):
    """One audio track, as its file describes it."""

    language: str | None = None
    title: str | None = None
    is_default: bool = False

    @property
    def label(self) -> str:
        """Language and title, as far as there are any, fit for one line."""
        title = visible(f'"{self.title}"') if self.title else ""
        return " ".join(filter(None, [visible(self.language or ""), title]))


class Reader(Protocol):
    """One way of reading a file."""

    claimed_s: float | None
    """Length the container states, seconds; None where it is absent or only a guess."""
    tracks: tuple[Track, ...]
    """All audio tracks in the file."""
    track: int
    """Index of the one that is read."""
    reached_s: float
    """Up to where the file was read so far, whatever track goes that far, seconds; 0.0 if it has one only."""

    @property
    def errors(self) -> int:
        """Damaged places passed over so far."""

    @property
    def gaps(self) -> Gaps:
        """Gaps filled with silence so far."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield the audio in order. Raises `UnreadableError` where this reader cannot go on."""

    def close(self) -> None:
        """Let go of the file; may be called again."""


class UnreadableError(Exception):
    """One reader can make nothing (more) of the file. Never leaves `stream` and `containers`."""


class NoAudioStreamError(UnreadableError):
    """A media file, but there is nothing to hear in it."""


class NoTrackError(UnreadableError):
    """The file has no such track; the message lists those it has."""
