"""Streams any audio file as blocks at 16 kHz, in memory that does not grow with its length.

`sources` opens the file, `containers` decodes it, `downmix` mixes its channels (or `channels` keeps them
apart), `resampling` changes the rate. This module repairs unusable samples, and reports in `warnings` what
was done to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from as2d_cli.audio.channels import Apart
from as2d_cli.audio.containers import open_readers
from as2d_cli.audio.downmix import Downmix
from as2d_cli.audio.headers.sizes import whole
from as2d_cli.audio.readers import Chunk, Gaps, Track, UnreadableError
from as2d_cli.audio.resampling import gathered, resampled
from as2d_cli.audio.sources import open_file
from as2d_cli.audio.tracks import EACH, NO_CHOICE, AudioChoice, described
from as2d_cli.domain.errors import AudioError
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples

_RATES_HZ = range(1_000, 1_000_001)
"""Outside of these a header is garbage, and resampling could make terabytes of it."""
_FULL_SCALE = 0.999
_CLIPPED_SHARE = 0.005
_LOUDEST = 8.0
"""18 dB over full scale: a float recording may get there, beyond it only mistakes do."""
_SHORT_S, _SHORT_SHARE = 0.5, 0.01
"""Missing audio worth a word: codec padding and rounding stay below."""


@dataclass
class _Findings:
    """What was wrong with the audio, counted while it streams past."""

    heard_s: float = 0.0
    reached_s: float = 0.0
    """Up to where the file was read; its audio may end before its pictures."""
    claimed_s: float | None = None
    header_s: float | None = None
    """Length that a WAV header states, where the file holds more."""
    tracks: tuple[Track, ...] = ()
    track: int = 0
    samples: int = 0
    damaged: int = 0
    gaps: Gaps = field(default_factory=Gaps)
    not_finite: int = 0
    not_finite_at_s: float = 0.0
    clipped: int = 0
    loudest: float = 0.0
    cancelled_at_s: float | None = None
    """Where channels cancelled each other first."""
    same_channels: tuple[int, int] | None = None
    """Two that hold the same, where each is heard by itself."""

    @property
    def is_short(self) -> bool:
        """Whether the container promised clearly more than was decoded."""
        claimed = self.claimed_s or 0.0
        return claimed - max(self.heard_s, self.reached_s) > max(_SHORT_S, _SHORT_SHARE * claimed)

    def lines(self) -> list[str]:
        """Return one line per kind of trouble."""
        lines = []
        if len(self.tracks) > 1:
            names = f" ({described(self.tracks)})" if any(track.label for track in self.tracks) else ""
            heard = f"track {self.track + 1}" if self.track else "the first"
            lines.append(f"has {len(self.tracks)} audio tracks{names}; only {heard} was heard")
        if self.damaged:
            lines.append(
                f"damaged in {self.damaged} place(s); what could not be decoded is missing or silent"
            )
        if self.header_s is not None:
            told, held = f"{self.header_s:.1f} s", f"{self.heard_s:.1f} s"
            lines.append(f"the header says {told}, the file holds {held}: all of it was read")
        if self.gaps.total_s > _SHORT_S:
            lines.append(
                f"has no audio in {self.gaps.count} place(s) (first at {self.gaps.first_s:.2f} s), "
                f"{self.gaps.total_s:.1f} s in all; silence stands there"
            )
        if self.is_short:
            lines.append(
                f"cut short: the file says {self.claimed_s:.1f} s, only {self.heard_s:.1f} s could be decoded"
            )
        if self.not_finite:
            lines.append(
                f"{self.not_finite} sample(s) are not numbers (first at {self.not_finite_at_s:.2f} s); "
                "replaced by silence"
            )
        if self.loudest > _LOUDEST:
            lines.append(f"samples reach {self.loudest:.3g} times full scale; limited to {_LOUDEST:g} times")
        elif self.clipped > _CLIPPED_SHARE * self.samples:
            lines.append(f"clipped: {self.clipped / self.samples:.1%} of the samples are at full scale")
        return [*lines, *self._of_channels()]

    def _of_channels(self) -> Iterator[str]:
        if self.cancelled_at_s is not None:
            yield f"channels cancel each other (first at {self.cancelled_at_s:.2f} s); used the loudest"
        if self.same_channels is not None:
            one, other = self.same_channels
            yield f"channels {one} and {other} hold the same, which is written twice: leave out --channel"


class AudioStream:
    """One open file; iterate `blocks()` once, then read `duration_s` and `warnings`."""

    def __init__(self, source: Path | BinaryIO, choice: AudioChoice = NO_CHOICE) -> None:
        self._choice = choice
        self._file, self.name, self._ours, self.sha256 = open_file(source)
        file, stated_s = whole(self._file)
        self._readers = open_readers(file, self.name, choice.track)
        self._findings = _Findings(header_s=stated_s)
        self._length = 0
        self._ended = False
        try:
            self._first = next(self._readers)
        except AudioError:
            if self._ours:
                self._file.close()
            raise
        self.expected_s = self._first.claimed_s
        """Length stated by the file, seconds, for progress; None if it states none."""

    @property
    def duration_s(self) -> float | None:
        """Length of all blocks together, seconds; None until the last one was taken."""
        return self._length / SAMPLE_RATE_HZ if self._ended else None

    @property
    def warnings(self) -> list[str]:
        """What was wrong with the audio and what was done about it, one line each, without the name."""
        return self._findings.lines()

    def blocks(self) -> Iterator[Samples]:
        """Yield the audio in blocks of about a second, then close the file.

        Blocks are mono, or (n_samples, n_channels) if each channel is to be heard by itself.

        Raises AudioError if the file turns out to hold no audio at all. Damage is passed over and told
        in `warnings`.
        """
        try:
            for block in resampled(self._apart() if self._choice.channel == EACH else self._mono()):
                self._length += len(block)
                yield block
            if not self._findings.samples:
                raise AudioError(f"{self.name}: holds no audio samples", "was the recording saved?")
            self._ended = True
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the file; may be called at any time, also twice."""
        self._first.close()
        self._readers.close()
        if self._ours:
            self._file.close()

    def __enter__(self) -> AudioStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _chunks(self) -> Iterator[Chunk]:
        """Yield what the first reader decodes and, where it stops early, what the next one adds."""
        findings = self._findings
        for reader in chain([self._first], self._readers):
            findings.claimed_s = findings.claimed_s or reader.claimed_s
            if self._choice.track is None:
                findings.tracks, findings.track = reader.tracks, reader.track
            skip_s = findings.heard_s
            try:
                for chunk in reader.chunks():
                    samples, rate, _ = chunk
                    if rate not in _RATES_HZ:
                        raise AudioError(f"{self.name}: claims a sample rate of {rate} Hz")
                    skipped = min(len(samples), round(skip_s * rate))
                    skip_s = max(0.0, skip_s - len(samples) / rate)
                    findings.heard_s += (len(samples) - skipped) / rate
                    yield chunk._replace(samples=samples[skipped:])
            except UnreadableError:
                findings.damaged += 1
            finally:
                findings.damaged += reader.errors
                findings.gaps, findings.reached_s = reader.gaps, reader.reached_s
                reader.close()
            if findings.heard_s and not findings.damaged and not findings.is_short:
                return

    def _mono(self) -> Iterator[tuple[Samples, int]]:
        downmix = Downmix(self.name, self._choice.channel)
        for mono, rate in downmix.mono(self._repaired(gathered(self._chunks()))):
            self._findings.cancelled_at_s = downmix.cancelled_at_s
            yield self._counted(mono), rate

    def _apart(self) -> Iterator[tuple[Samples, int]]:
        apart = Apart(self.name)
        for columns, rate in apart.columns(self._repaired(gathered(self._chunks()))):
            yield self._counted(columns), rate
        self._findings.same_channels = apart.same

    def _counted(self, heard: Samples) -> Samples:
        self._findings.samples += heard.size
        if self._findings.loudest >= _FULL_SCALE:
            self._findings.clipped += int(np.count_nonzero(np.abs(heard) >= _FULL_SCALE))
        return heard

    def _repaired(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        at_s = 0.0
        for chunk in chunks:
            self._repair(chunk.samples, chunk.rate, at_s)
            at_s += len(chunk.samples) / chunk.rate
            yield chunk

    def _repair(self, samples: NDArray[np.float32], rate: int, at_s: float) -> None:
        """Silence what is not finite and limit what is absurdly loud, in place."""
        findings = self._findings
        loudest = _loudest(samples)
        if not np.isfinite(loudest):
            finite = np.isfinite(samples)
            bad = np.flatnonzero(~finite.all(axis=1))
            if not findings.not_finite:
                findings.not_finite_at_s = at_s + int(bad[0]) / rate
            findings.not_finite += len(bad)
            samples[~finite] = 0.0
            loudest = _loudest(samples)
        findings.loudest = max(findings.loudest, loudest)
        if loudest > _LOUDEST:
            np.clip(samples, -_LOUDEST, _LOUDEST, out=samples)


def _loudest(samples: NDArray[np.float32]) -> float:
    """Return the largest magnitude; NaN if there is one among them."""
    return float(np.maximum(samples.max(), -samples.min())) if samples.size else 0.0


def open_audio(source: Path | BinaryIO, choice: AudioChoice = NO_CHOICE) -> AudioStream:
    """Open `source` by its content, whatever its name; a binary stream need not be seekable.

    Raises AudioError, one line with the file's name, if there is no audio to be had from it.
    """
    return AudioStream(source, choice)


def claimed_s(source: Path | BinaryIO) -> float:
    """Return the length that a file states, seconds; 0.0 if it states none, or cannot be read."""
    try:
        with open_audio(source) as stream:
            return stream.expected_s or 0.0
    except AudioError:  # told by whoever reads it
        return 0.0
