"""Finds out when a FLAC stream in Ogg begins; FFmpeg takes every first page of one to begin at 0.

A page states the number of samples up to its end (RFC 3533, section 6); less those of its frames, it begins.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_PAGE = struct.Struct("<4sxBqIxxxxxxxxB")
_FIRST_OF_STREAM, _CONTINUES = 2, 1
_NOTHING_ENDS = -1
"""What a page states on which no packet ends."""
_FLAC = b"\x7fFLAC"
"""How a FLAC stream's first packet begins (RFC 9639, section 10.1)."""
_MOST_PAGES = 100_000
_FRAME_HEAD = 16
"""Bytes in which a frame's header ends at the latest."""
_LEAST_FRAME = 6
"""Bytes that any frame has."""


class Begin(NamedTuple):
    """How a stream begins, in samples."""

    at: int
    """Before the first one, by the stream's clock."""
    n_first: int
    """On the first page that has any."""


class _Page(NamedTuple):
    flags: int
    samples: int
    serial: int
    packets: tuple[bytes, ...]
    """The beginnings of what is on it."""
    is_whole: bool
    """Whether the last of them ends here."""


def flac_begin(file: BinaryIO, index: int) -> Begin | None:
    """Return how the stream of this index begins, None if it is not FLAC or nothing can be found out."""
    serials: list[int] = []
    packets: list[bytes] = []
    for page in _pages(file):
        if page.flags & _FIRST_OF_STREAM:
            if page.serial not in serials:
                serials.append(page.serial)
            if len(serials) == index + 1 == serials.index(page.serial) + 1 and not _is_flac(page):
                return None
            continue
        if len(serials) <= index:
            return None
        if page.serial != serials[index]:
            continue
        packets += page.packets[1:] if page.flags & _CONTINUES else page.packets
        frames = [count for count in map(_samples, packets[: len(packets) - (not page.is_whole)]) if count]
        if frames and page.samples != _NOTHING_ENDS:
            return Begin(page.samples - sum(frames), sum(frames))
    return None


def _is_flac(page: _Page) -> bool:
    return bool(page.packets) and page.packets[0].startswith(_FLAC)


def _pages(file: BinaryIO) -> Iterator[_Page]:
    """Yield the pages of a file from its beginning, up to damage."""
    place = 0
    for _ in range(_MOST_PAGES):
        file.seek(place)
        head = file.read(_PAGE.size)
        if len(head) < _PAGE.size or not head.startswith(b"OggS"):
            return
        _, flags, samples, serial, n_pieces = _PAGE.unpack(head)
        lengths = file.read(n_pieces)
        body = file.read(sum(lengths))
        packets, begin, end = [], 0, 0
        for length in lengths:
            end += length
            if length < 255:  # the piece that ends a packet is not full
                packets.append(body[begin : begin + _FRAME_HEAD])
                begin = end
        is_whole = begin == end
        if not is_whole:
            packets.append(body[begin : begin + _FRAME_HEAD])
        yield _Page(flags, samples, serial, tuple(packets), is_whole)
        place += _PAGE.size + n_pieces + len(body)


def _samples(frame: bytes) -> int:
    """Return the samples of a FLAC frame, 0 of what is none (RFC 9639, section 9.1)."""
    if len(frame) < _LEAST_FRAME or frame[0] != 0xFF or frame[1] & 0xFE != 0xF8:
        return 0
    kind = frame[2] >> 4
    if kind >= 8:
        return 256 << (kind - 8)
    if kind in (6, 7):
        number = 4 + max(1, 8 - (frame[4] ^ 0xFF).bit_length())  # coded as in UTF-8: ones say how long it is
        return int.from_bytes(frame[number : number + kind - 5], "big") + 1
    return (0, 192, 576, 1152, 2304, 4608)[kind]
