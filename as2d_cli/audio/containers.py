"""Opens a media file by its content and reads its audio as it is in there: any rate, any channels.

libsndfile reads what it is best at (uncompressed containers and FLAC). FFmpeg (`ffmpeg`) reads the rest and
takes over where libsndfile gives up. `stream` mixes, resamples and checks what is read.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import BinaryIO

import soundfile

from as2d_cli.audio.headers.protection import protected_tracks
from as2d_cli.audio.readers import (
    DEFAULT_LAYOUTS,
    Chunk,
    Gaps,
    NoAudioStreamError,
    NoTrackError,
    Reader,
    Track,
    UnreadableError,
)
from as2d_cli.audio.tracks import choose_track, described
from as2d_cli.domain.errors import AudioError
from as2d_cli.system.spawning import uninterrupted

_LIBSNDFILE_MAGIC = frozenset(
    [*b"RIFF RIFX RF64 riff FORM fLaC .snd dns. caff NIST MATL Crea PVF1 2BIT".split(), b" paf", b"fap "]
)
"""First four bytes of what libsndfile may read; it is shown nothing else.

Not Ogg: it stops after the first of several joined streams. Not MP3: it prints to stderr and trusts
the guessed length of a file that does not state one.
"""
_CHUNK_BYTES = 8 << 20


class _Sequential(soundfile.SoundFile):  # type: ignore[misc]
    """A SoundFile read from front to back.

    soundfile seeks around each read of a seekable file and stops at the length that the header
    claims; both are wrong for streams and damaged files.
    """

    def seekable(self) -> bool:
        return False


class SoundfileReader:
    """Reads with libsndfile. Raises `UnreadableError` for an unknown format and a missing track."""

    tracks: tuple[Track, ...] = (Track(),)
    errors = 0
    reached_s = 0.0

    def __init__(self, file: BinaryIO, track: str | None = None) -> None:
        self.track = choose_track(self.tracks, track)
        file.seek(0)
        try:
            with uninterrupted():  # Ctrl-C in a callback of native code would be printed, and lost
                self._sound = _Sequential(file)
        except (soundfile.SoundFileError, TypeError, ValueError) as error:
            raise UnreadableError(str(error)) from error
        self.gaps = Gaps()
        self.claimed_s = self._claimed_s()
        self._layout = self._channel_names()
        if self._sound.subtype.startswith("MPEG"):
            self.close()
            raise UnreadableError("MPEG audio is left to FFmpeg")

    def _claimed_s(self) -> float | None:
        """Return the length the header states, which libsndfile trims to the bytes present."""
        frames = self._sound.frames
        if not 0 < frames < 1 << 62 or self._sound.samplerate <= 0:
            return None
        trimmed = re.search(r"data : (\d+) \(should be (\d+)\)", self._sound.extra_info)
        if trimmed and 0 < int(trimmed[2]) < int(trimmed[1]) < 0x7FFF0000:  # above: "length unknown"
            frames = frames * int(trimmed[1]) / int(trimmed[2])
        return float(frames / self._sound.samplerate)

    def _channel_names(self) -> tuple[str, ...]:
        """Return what the file says of its channels; in FLAC their number says it."""
        n_channels = self._sound.channels
        if self._sound.format == "FLAC":
            return DEFAULT_LAYOUTS.get(n_channels, ())
        stated = re.search(r"(?:Channel Mask|Layout) *:.*\((.+)\)", self._sound.extra_info)
        names = tuple(stated[1].split(", ")) if stated else ()
        return names if len(names) == n_channels else ()

    def chunks(self) -> Iterator[Chunk]:
        """Yield at most a second at a time. Raises `UnreadableError` where libsndfile gives up."""
        rate = self._sound.samplerate
        count = max(1, min(rate, _CHUNK_BYTES // (4 * self._sound.channels)))
        while True:
            try:
                with uninterrupted():
                    samples = self._sound.read(count, dtype="float32", always_2d=True)
            except (soundfile.SoundFileError, ValueError) as error:
                raise UnreadableError(str(error)) from error
            if not len(samples):
                return
            yield Chunk(samples, rate, self._layout)

    def close(self) -> None:
        """Close libsndfile's handle; the file stays open."""
        self._sound.close()


def open_readers(file: BinaryIO, name: str, track: str | None) -> Generator[Reader, None, None]:
    """Yield the readers that can open `file`, the one to be trusted first; `track` as in `AudioChoice`.

    Raises AudioError once none is left, if none could open it, and at once if its audio is encrypted.
    """
    protected = protected_tracks(file)
    if protected and all(protected):
        raise AudioError(
            f"{name}: protected: its audio is encrypted", "ask whoever sold it for a file without protection"
        )
    file.seek(0)
    by_libsndfile = file.read(4) in _LIBSNDFILE_MAGIC
    opened, failure = 0, UnreadableError("")
    for kind in (SoundfileReader, _ffmpeg_reader) if by_libsndfile else (_ffmpeg_reader,):
        try:
            reader = kind(file, track)
        except UnreadableError as error:
            failure = failure if isinstance(failure, NoAudioStreamError | NoTrackError) else error
        else:
            if any(protected[reader.track : reader.track + 1]):
                reader.close()
                raise AudioError(
                    f"{name}: protected: its audio track {reader.track + 1} is encrypted",
                    f"--audio-track chooses another: {described(reader.tracks)}",
                )
            opened += 1
            yield reader
    if not opened:
        raise _unreadable(name, failure, track)


def _ffmpeg_reader(file: BinaryIO, track: str | None) -> Reader:
    from as2d_cli.audio.ffmpeg import (
        AvReader,  # not at the top: FFmpeg takes long to load, and seldom is needed
    )

    return AvReader(file, track)


def _unreadable(name: str, failure: UnreadableError, track: str | None) -> AudioError:
    if isinstance(failure, NoTrackError):
        return AudioError(f"{name}: no audio track {track}", f"its audio tracks: {failure}")
    if isinstance(failure, NoAudioStreamError):
        return AudioError(f"{name}: no audio stream", "the file opens, but holds nothing to transcribe")
    return AudioError(
        f"{name}: not audio, or too damaged to open",
        "play it in a media player; if that works, convert it to WAV or FLAC first",
    )
