"""Reads a WAV file to its end where its header tells less: its size wrapped at 4 GB, or was never written.

Recorders write the size of the audio last, and a crash keeps them from it. What may rightly follow the audio,
such as titles, is not taken for it.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_WRAP = 1 << 32
_UNKNOWN_SIZE = _WRAP - 1
"""What a chunk states whose size is unknown, or in RF64 (EBU Tech 3306) stands elsewhere."""
_MOST_HEADER_BYTES = 1 << 20
_MOST_CHUNKS = 1000
_LEAST_S = 0.1
"""Less than this behind the audio is padding."""
_NO_AUDIO = tuple(
    b"LIST|id3 |ID3 |bext|iXML|axml|_PMX|cue |smpl|inst|plst|fact|JUNK|junk|PAD |FLLR|ID3|TAG|APETAGEX".split(
        b"|"
    )
)
"""Beginnings of chunks and tags that follow audio, whole or cut off."""


class WavFile(NamedTuple):
    """A file to read, of any kind."""

    file: BinaryIO
    stated_s: float | None = None
    """Seconds that the header states, where there is more; the header of `file` then states all."""


class _Header(NamedTuple):
    """What stands before the audio of a WAV file."""

    chunks: bytes
    """Those that readers need, with their heads."""
    start: int
    """Where the audio begins."""
    stated: int
    """Bytes of audio, as the header has it."""
    bytes_per_s: int
    block: int
    """Bytes of one sample of all channels, or of what is encoded together."""


class _Reheaded(io.RawIOBase):
    """A file with another beginning: `header` for the first `start` bytes of `file`."""

    def __init__(self, header: bytes, file: BinaryIO, start: int) -> None:
        self._header, self._file, self._start = header, file, start
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._place
        elif whence == os.SEEK_END:
            offset += self._file.seek(0, os.SEEK_END) - self._start + len(self._header)
        self._place = max(0, offset)
        return self._place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = len(buffer)
        piece = self._header[self._place : self._place + count]
        if not piece:
            self._file.seek(self._place - len(self._header) + self._start)
            piece = self._file.read(count)
        buffer[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)


def whole(file: BinaryIO) -> WavFile:
    """Return `file` as it is, or, if it is a WAV that holds more audio than it states, one that says so."""
    header = _header(file)
    if header is None:
        return WavFile(file)
    end = file.seek(0, os.SEEK_END)
    size = _audio_bytes(file, header, end)
    if size - header.stated < _LEAST_S * header.bytes_per_s:
        return WavFile(file)
    size -= size % header.block
    sizes = struct.pack("<QQQI", len(header.chunks) + size + 48, size, size // header.block, 0)
    beginning = b"RF64\xff\xff\xff\xffWAVEds64" + struct.pack("<I", len(sizes)) + sizes + header.chunks
    view = _Reheaded(beginning + b"data\xff\xff\xff\xff", file, header.start)
    return WavFile(io.BufferedReader(view), header.stated / header.bytes_per_s)


def _header(file: BinaryIO) -> _Header | None:
    """Return what stands before the audio, None if that makes no sense."""
    file.seek(0)
    head = file.read(_MOST_HEADER_BYTES)
    if head[:4] not in (b"RIFF", b"RF64") or head[8:12] != b"WAVE":
        return None
    kept, stated_64, format_ = b"", None, b""
    for name, start, size in _chunks(head):
        body = head[start : start + size]
        if name == b"data":
            return _completed(kept, start, size if stated_64 is None else stated_64, format_)
        if name == b"ds64":
            stated_64 = int.from_bytes(body[8:16], "little")
            continue
        format_ = body if name == b"fmt " else format_
        kept += head[start - 8 : start + size + size % 2]
    return None


def _chunks(head: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, place and size of what each chunk holds."""
    place = 12
    while place + 8 <= len(head):
        name, size = struct.unpack_from("<4sI", head, place)
        yield name, place + 8, size
        place += 8 + size + size % 2


def _completed(chunks: bytes, start: int, stated: int, format_: bytes) -> _Header | None:
    if len(format_) < 16:
        return None
    rate, bytes_per_s, block = struct.unpack_from("<IIH", format_, 4)
    bytes_per_s = bytes_per_s or rate * block
    return _Header(chunks, start, stated, bytes_per_s, block) if bytes_per_s and block else None


def _audio_bytes(file: BinaryIO, header: _Header, end: int) -> int:
    """Return how much audio there is: as stated, some times 4 GB more, or all to the `end` of the file."""
    room = end - header.start
    wraps = max(0, room - header.stated) // _WRAP
    for size in (header.stated + wrap * _WRAP for wrap in range(wraps, -1, -1)):
        if size >= room or any(_is_no_audio(file, header.start + size + pad, end) for pad in (0, 1)):
            return size
    return room


def _is_no_audio(file: BinaryIO, start: int, end: int) -> bool:
    """Tell whether a file goes on with tags, or with nothing but chunks."""
    file.seek(start)
    if file.read(8).startswith(_NO_AUDIO):
        return True
    for _ in range(_MOST_CHUNKS):
        if end - start < 8:
            return True
        file.seek(start)
        name, size = struct.unpack("<4sI", file.read(8))
        start += 8 + size
        if start > end or not all(0x20 <= byte < 0x7F for byte in name):
            return False
        start += size % 2
    return False
