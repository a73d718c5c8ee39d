"""Open a file by its content and read its audio as the file holds it: any rate, any channels.

libsndfile reads what it is best at (uncompressed containers and FLAC); FFmpeg, through PyAV, reads
the rest and takes over where libsndfile gives up. Mixing, resampling and checks are `audio`'s.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO, Protocol

import av
import av.error
import numpy as np
import soundfile
from numpy.typing import NDArray

from as2d_cli.errors import AudioError
from as2d_cli.sources import reason

Chunk = tuple[NDArray[np.float32], int]
"""Samples as stored, shape (n_frames, n_channels), and their rate in Hz."""

_LIBSNDFILE_MAGIC = frozenset(
    [*b"RIFF RIFX RF64 riff FORM fLaC .snd dns. caff NIST MATL Crea PVF1 2BIT".split(), b" paf", b"fap "]
)
"""First four bytes of what libsndfile may read; it is shown nothing else.

Not Ogg: it stops after the first of several joined streams. Not MP3: it prints to stderr and trusts
the guessed length of a file that does not state one.
"""
_CHUNK_BYTES = 8 << 20
_SAMPLE_KINDS = {
    name: np.dtype(kind)
    for name, kind in {"u8": "u1", "s16": "i2", "s32": "i4", "s64": "i8", "flt": "f4", "dbl": "f8"}.items()
}
"""FFmpeg's packed sample formats."""
_MAX_DEMUX_ERRORS = 64


class Reader(Protocol):
    """One way of reading a file."""

    claimed_s: float | None
    """Length the container states, seconds; None where it is absent or only a guess."""
    errors: int
    """Damaged places passed over so far."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield the audio in order. Raises `UnreadableError` where this reader cannot go on."""

    def close(self) -> None:
        """Let go of the file; may be called again."""


class UnreadableError(Exception):
    """One reader can make nothing (more) of the file. Never leaves `audio` and `containers`."""


class _Sequential(soundfile.SoundFile):  # type: ignore[misc]
    """A SoundFile read from front to back.

    soundfile seeks around each read of a seekable file and stops at the length that the header
    claims; both are wrong for streams and damaged files.
    """

    def seekable(self) -> bool:
        return False


class SoundfileReader:
    """Reads with libsndfile. Raises `UnreadableError` if it does not know the format."""

    def __init__(self, file: BinaryIO) -> None:
        file.seek(0)
        try:
            self._sound = _Sequential(file)
        except (soundfile.SoundFileError, TypeError, ValueError) as error:
            raise UnreadableError(str(error)) from error
        self.errors = 0
        self.claimed_s = self._claimed_s()
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

    def chunks(self) -> Iterator[Chunk]:
        """Yield at most a second at a time."""
        rate = self._sound.samplerate
        count = max(1, min(rate, _CHUNK_BYTES // (4 * self._sound.channels)))
        while True:
            try:
                samples = self._sound.read(count, dtype="float32", always_2d=True)
            except (soundfile.SoundFileError, ValueError) as error:
                raise UnreadableError(str(error)) from error
            if not len(samples):
                return
            yield samples, rate

    def close(self) -> None:
        """Close libsndfile's handle; the file stays open."""
        self._sound.close()


class _Nameless:
    """A file without a name, from whose extension FFmpeg would otherwise guess."""

    def __init__(self, file: BinaryIO) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell


class AvReader:
    """Reads the first audio stream with FFmpeg. Raises `UnreadableError` if there is no way to."""

    def __init__(self, file: BinaryIO) -> None:
        file.seek(0)
        states_length = _states_length(file)
        file.seek(0)
        try:
            # A playlist must not make us open other files or the network.
            self._container = av.open(
                _Nameless(file), "r", metadata_errors="ignore", options={"protocol_whitelist": "none"}
            )
        except (av.error.FFmpegError, OSError, ValueError) as error:
            raise UnreadableError(reason(error)) from error
        self.errors = 0
        streams = self._container.streams
        if not streams.audio:
            self._container.close()
            raise NoAudioStreamError("it has no audio stream" if len(streams) else "it is empty")
        self._stream = streams.audio[0]
        if self._stream.codec_context is None:
            self._container.close()
            raise UnreadableError("no decoder for its audio codec")
        self.claimed_s = self._claimed_s() if states_length else None

    def _claimed_s(self) -> float | None:
        if self._stream.duration and self._stream.time_base:
            return float(self._stream.duration * self._stream.time_base)
        if self._container.duration and not self._container.streams.video:
            return float(self._container.duration / av.time_base)
        return None

    def chunks(self) -> Iterator[Chunk]:
        """Yield packets as they decode, passing over the damaged ones."""
        for packet in self._packets():
            try:
                frames = [frame for frame in packet.decode() if frame.samples and frame.sample_rate]
                decoded = [(_as_float(frame), frame.sample_rate) for frame in frames]
            except (av.error.FFmpegError, ValueError):
                self.errors += 1
            else:
                yield from decoded

    def _packets(self) -> Iterator[Any]:
        """Demux to the end. A demuxer that fails is asked again: it may find the next packet."""
        for _ in range(_MAX_DEMUX_ERRORS):
            try:
                yield from self._container.demux(self._stream)
                return
            except (av.error.EOFError, av.error.ExitError):
                return
            except (av.error.FFmpegError, OSError, ValueError):
                self.errors += 1

    def close(self) -> None:
        """Close FFmpeg's handles; the file stays open."""
        self._container.close()


class NoAudioStreamError(UnreadableError):
    """A media file, but there is nothing to hear in it."""


def _as_float(frame: av.AudioFrame) -> NDArray[np.float32]:
    """Return a decoded frame as (n_frames, n_channels), full scale at 1. Raises ValueError if broken."""
    # Not frame.to_ndarray(): of frames with more than 8 channels it reads planes that do not exist.
    kind, channels = _SAMPLE_KINDS[frame.format.packed.name], frame.layout.nb_channels
    if frame.format.is_planar:
        planes = [np.frombuffer(memoryview(plane), kind, frame.samples) for plane in frame.planes[:channels]]
        data = np.stack(planes, axis=1)
    else:
        data = np.frombuffer(memoryview(frame.planes[0]), kind, frame.samples * channels).reshape(
            -1, channels
        )
    if kind == np.uint8:
        return ((data.astype(np.float32) - 128.0) / 128.0).astype(np.float32)
    if np.issubdtype(kind, np.integer):
        return (data * np.float64(2.0 ** (1 - 8 * kind.itemsize))).astype(np.float32)
    return data.astype(np.float32)


def _states_length(file: BinaryIO) -> bool:
    """Tell whether the length FFmpeg will report is written in the file, not guessed from its size.

    MP3 states it in a Xing, Info or VBRI frame, after any ID3 tag (ID3v2.4 section 3.1); raw AAC never.
    """
    head = file.read(10)
    if head[:3] == b"ID3" and len(head) == 10:
        size = sum((byte & 0x7F) << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))
        file.seek(10 + size)
        head = b""
    first_frame = head + file.read(4096)
    if first_frame[:1] == b"\xff":
        return any(mark in first_frame for mark in (b"Xing", b"Info", b"VBRI"))
    return True


def open_readers(file: BinaryIO, name: str) -> Generator[Reader, None, None]:
    """Yield the readers that can open `file`, the one to be trusted first.

    Raises AudioError once none is left, if none could open it.
    """
    file.seek(0)
    by_libsndfile = file.read(4) in _LIBSNDFILE_MAGIC
    opened, failure = 0, UnreadableError("")
    for kind in (SoundfileReader, AvReader) if by_libsndfile else (AvReader,):
        try:
            reader: Reader = kind(file)
        except UnreadableError as error:
            failure = failure if isinstance(failure, NoAudioStreamError) else error
        else:
            opened += 1
            yield reader
    if not opened:
        raise _unreadable(name, failure)


def _unreadable(name: str, failure: UnreadableError) -> AudioError:
    if isinstance(failure, NoAudioStreamError):
        return AudioError(f"{name}: no audio stream", "The file opens, but holds nothing to transcribe.")
    return AudioError(
        f"{name}: not audio, or too damaged to open",
        "Play it in a media player; if that works, convert it to WAV or FLAC first.",
    )
