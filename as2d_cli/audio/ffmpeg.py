"""Reads audio with FFmpeg, through PyAV: compressed formats, films, damaged files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import av
import av.error
import numpy as np
from av.audio.plane import AudioPlane
from av.stream import Disposition
from numpy.typing import NDArray

from as2d_cli.audio.headers.ogg import flac_begin
from as2d_cli.audio.readers import Chunk, Gaps, NoAudioStreamError, Track, UnreadableError
from as2d_cli.audio.timeline import Timeline
from as2d_cli.audio.tracks import choose_track
from as2d_cli.domain.errors import reason

_TITLES_ASIDE: dict[str, Any] = (
    {"metadata_errors": "ignore"} if int(av.__version__.partition(".")[0]) < 19 else {}
)
"""Until PyAV 19 a title that is no UTF-8 was an error unless one asked otherwise."""
_SAMPLE_KINDS = {
    name: np.dtype(kind)
    for name, kind in {"u8": "u1", "s16": "i2", "s32": "i4", "s64": "i8", "flt": "f4", "dbl": "f8"}.items()
}
"""FFmpeg's packed sample formats."""
_NO_NAME = "NONE"
"""Of channels without a layout."""
_MAX_DEMUX_ERRORS = 64
_MOST_READ_BYTES = 1 << 20
_DURATION_IS_END = {"matroska,webm", "nut", "ogg", "asf"}
"""Containers whose duration is the time of their end; that of others is a length."""
_SAME_S = 0.01


class _Nameless:
    """A file without a name, from whose extension FFmpeg would otherwise guess."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        """Read some of so many bytes: damage asks for gigabytes, for which Python makes room at once."""
        return self._file.read(min(size, _MOST_READ_BYTES))


class AvReader:
    """Reads an audio track with FFmpeg. Raises `UnreadableError` if there is no way to."""

    def __init__(self, file: BinaryIO, track: str | None = None) -> None:
        """`track` as in `AudioChoice`."""
        file.seek(0)
        states_length = _states_length(file)
        file.seek(0)
        try:
            # A playlist must not make us open other files or the network.
            self._container = av.open(
                _Nameless(file), "r", options={"protocol_whitelist": "none"}, **_TITLES_ASIDE
            )
        except (av.error.FFmpegError, OSError, ValueError) as error:
            raise UnreadableError(reason(error)) from error
        self._failures = 0
        streams = self._container.streams
        try:
            self.tracks = tuple(map(_track, streams.audio))
            if not streams.audio:
                raise NoAudioStreamError("it has no audio stream" if len(streams) else "it is empty")
            self.track = choose_track(self.tracks, track)
            self._stream = streams.audio[self.track]
            if self._stream.codec_context is None:
                raise UnreadableError("no decoder for its audio codec")
        except UnreadableError:
            self._container.close()
            raise
        self._pictures = [one for one in streams.video if not one.disposition & Disposition.attached_pic]
        self._timeline = Timeline(self._start_s)
        self.reached_s = 0.0
        self._counts_samples = self._container.format.name == "ogg"
        self._begin_s, self._first_page_s = self._ogg_flac(file)
        self.claimed_s = self._claimed_s() if states_length else None

    @property
    def errors(self) -> int:
        """Damaged places passed over so far. Ogg's times count samples: where they jump, some were lost."""
        return self._failures + (self._timeline.gaps.count if self._counts_samples else 0)

    @property
    def gaps(self) -> Gaps:
        """Gaps that are meant, so far."""
        return Gaps() if self._counts_samples else self._timeline.gaps

    @property
    def _start_s(self) -> float | None:
        """Time in the container that is 0 in what is read; None: wherever the audio begins."""
        start, n_tracks = self._container.start_time, len(self._pictures) + len(self.tracks)
        return None if start is None or n_tracks == 1 else start / av.time_base

    def _ogg_flac(self, file: BinaryIO) -> tuple[float, float]:
        """Return when FLAC in Ogg begins, where FFmpeg has 0, and how long its first page is, seconds."""
        codec = self._stream.codec_context
        if not self._counts_samples or codec.name != "flac" or not codec.sample_rate:
            return 0.0, 0.0
        place = file.tell()  # FFmpeg reads on from there
        begin = flac_begin(file, self._stream.index)
        file.seek(place)
        if begin is None or begin.at <= 0:
            return 0.0, 0.0
        return begin.at / codec.sample_rate, begin.n_first / codec.sample_rate

    def _time_s(self, frame: av.AudioFrame) -> float | None:
        """Return when a frame begins, if the container tells."""
        time_s: float | None = frame.time
        return time_s if time_s is None or time_s >= self._first_page_s else time_s + self._begin_s

    def _claimed_s(self) -> float | None:
        """Return the length of the track, or where it states none, of the file."""
        container, stream = self._container, self._stream
        begin_s = file_begin_s = (container.start_time or 0) / av.time_base
        if stream.start_time is not None:
            begin_s = float(stream.start_time * stream.time_base)
        begin_s += self._begin_s
        file_s = container.duration / av.time_base if container.duration else 0.0
        track_s = float(stream.duration * stream.time_base) if stream.duration else 0.0
        states_one = track_s and abs(track_s - file_s) > _SAME_S  # else FFmpeg gives the file's
        if states_one:
            is_opus = self._counts_samples and stream.codec_context.name == "opus"
            is_end = is_opus or container.format.name == "asf"  # although FFmpeg calls it a length
            end_s = track_s if is_end and track_s > begin_s else begin_s + track_s
        elif file_s:
            is_end = container.format.name in _DURATION_IS_END and file_s > begin_s
            end_s = file_s if is_end else file_begin_s + file_s
        else:
            return None
        return end_s - (begin_s if self._start_s is None else self._start_s)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the audio at its times, as it decodes; silence stands for what is missing."""
        for packet in self._packets():
            if packet.stream_index != self._stream.index:
                if packet.pts is not None:
                    end_s = float((packet.pts + (packet.duration or 0)) * packet.time_base)
                    self.reached_s = max(self.reached_s, end_s - (self._start_s or 0.0))
                continue
            try:
                frames = [frame for frame in packet.decode() if frame.samples and frame.sample_rate]
                decoded = [_chunk(frame) for frame in frames]
            except (av.error.FFmpegError, ValueError):
                self._failures += 1
                continue
            for frame, chunk in zip(frames, decoded, strict=True):
                yield from self._timeline.placed(chunk, self._time_s(frame))
        yield from self._timeline.rest()

    def _packets(self) -> Iterator[Any]:
        """Demux to the end. A demuxer that fails is asked again: it may find the next packet."""
        for _ in range(_MAX_DEMUX_ERRORS):
            try:
                yield from self._container.demux([self._stream, *self._pictures])
                return
            except (av.error.EOFError, av.error.ExitError):
                return
            except (av.error.FFmpegError, OSError, ValueError):
                self._failures += 1

    def close(self) -> None:
        """Close FFmpeg's handles; the file stays open."""
        self._container.close()


def _track(stream: av.AudioStream) -> Track:
    is_default = stream.codec_context is not None and bool(stream.disposition & Disposition.default)
    return Track(stream.metadata.get("language"), stream.metadata.get("title"), is_default)


def _chunk(frame: av.AudioFrame) -> Chunk:
    """Return a decoded frame. Raises ValueError if it is broken."""
    names = tuple(channel.name for channel in frame.layout.channels)
    layout = () if _NO_NAME in names else names
    return Chunk(_as_float(frame, len(names)), frame.sample_rate, layout)


def _as_float(frame: av.AudioFrame, channels: int) -> NDArray[np.float32]:
    """Return a decoded frame as (n_frames, n_channels), full scale at 1. Raises ValueError if broken."""
    # Not frame.to_ndarray() or frame.planes: from 8 channels up these look for planes that do not exist, at
    # which PyAV 19 raises.
    kind = _SAMPLE_KINDS[frame.format.packed.name]
    if frame.format.is_planar:
        data = np.stack([_plane(frame, index, kind, frame.samples) for index in range(channels)], axis=1)
    else:
        data = _plane(frame, 0, kind, frame.samples * channels).reshape(-1, channels)
    if kind == np.uint8:
        return ((data.astype(np.float32) - 128.0) / 128.0).astype(np.float32)
    if np.issubdtype(kind, np.integer):
        return (data * np.float64(2.0 ** (1 - 8 * kind.itemsize))).astype(np.float32)
    # Doubles beyond the range of a float become infinite, signalling NaNs quiet ones: both are told of later.
    with np.errstate(over="ignore", invalid="ignore"):
        return data.astype(np.float32)


def _plane(frame: av.AudioFrame, index: int, kind: np.dtype[Any], count: int) -> NDArray[Any]:
    return np.frombuffer(memoryview(AudioPlane(frame, index)), kind, count)


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
