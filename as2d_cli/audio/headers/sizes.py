"""Reads a file to its end where its header tells less: its size wrapped at 4 GB, or was never written.

Recorders write the size of the audio last, and a crash keeps them from it. What may rightly follow the audio,
such as titles, is not taken for it. `chunked` knows the headers.
"""

from __future__ import annotations

import io
import os
from typing import BinaryIO, NamedTuple

from as2d_cli.audio.headers.chunked import Audio, Chunks, found

_MOST_HEADER_BYTES = 1 << 20
_MOST_CHUNKS = 1000
_LEAST_S = 0.1
"""Less than this behind the audio is padding."""
_NO_AUDIO = tuple(
    b"LIST|id3 |ID3 |bext|iXML|axml|_PMX|cue |smpl|inst|plst|fact|JUNK|junk|PAD |FLLR|ID3|TAG|APETAGEX"
    b"|NAME|AUTH|(c) |ANNO|COMT|MARK|INST|MIDI|APPL|info|strg|uuid".split(b"|")
)
"""Beginnings of chunks and tags that follow audio, whole or cut off."""


class Whole(NamedTuple):
    """A file to read, of any kind."""

    file: BinaryIO
    stated_s: float | None = None
    """Seconds that the header states, where there is more; the header of `file` then states all."""


class _Reheaded(io.RawIOBase):
    """A file with another beginning, or an earlier end: `header`, then `start` to `end` of `file`."""

    def __init__(self, header: bytes, file: BinaryIO, start: int, end: int) -> None:
        self._header, self._file, self._start = header, file, start
        self._length = len(header) + end - start
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._place
        elif whence == os.SEEK_END:
            offset += self._length
        self._place = max(0, offset)
        return self._place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = max(0, min(len(buffer), self._length - self._place))
        piece = self._header[self._place : self._place + count]
        if not piece:
            self._file.seek(self._place - len(self._header) + self._start)
            piece = self._file.read(count)
        buffer[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)


def whole(file: BinaryIO) -> Whole:
    """Return `file` as it is, or, if it holds more audio than its header states, one that says so."""
    file.seek(0)
    audio = found(file.read(_MOST_HEADER_BYTES))
    if audio is None:
        return Whole(file)
    end = file.seek(0, os.SEEK_END)
    size = _audio_bytes(file, audio, end)
    holds_more = size - audio.stated >= _LEAST_S * audio.bytes_per_s
    if not holds_more and not (audio.chunks.counts_head and audio.start + size < end):
        return Whole(file)  # but libsndfile takes all that follows the audio of Wave64 for audio
    header = audio.header(size - size % audio.block)
    if header is None:
        return Whole(file)
    view = _Reheaded(header, file, audio.start, audio.start + size if audio.chunks.counts_head else end)
    return Whole(io.BufferedReader(view), audio.stated / audio.bytes_per_s if holds_more else None)


def _audio_bytes(file: BinaryIO, audio: Audio, end: int) -> int:
    """Return how much audio there is: as stated, some times 4 GB more, or all to the `end` of the file."""
    room = end - audio.start
    wrap = audio.chunks.most_bytes + 1
    wraps = max(0, room - audio.stated) // wrap
    for size in (audio.stated + count * wrap for count in range(wraps, -1, -1)):
        pads = range(audio.chunks.align)
        if size >= room or any(
            _is_no_audio(file, audio.chunks, audio.start + size + pad, end) for pad in pads
        ):
            return size
    return room


def _is_no_audio(file: BinaryIO, chunks: Chunks, start: int, end: int) -> bool:
    """Tell whether a file goes on with tags, or with nothing but chunks."""
    file.seek(start)
    if file.read(8).startswith(_NO_AUDIO):
        return True
    for _ in range(_MOST_CHUNKS):
        if end - start < chunks.head.size:
            return True
        file.seek(start)
        name, size = chunks.read(file.read(chunks.head.size))
        start += chunks.head.size + size
        if start > end or size < 0 or not chunks.is_name(name):
            return False
        start += -size % chunks.align
    return False
