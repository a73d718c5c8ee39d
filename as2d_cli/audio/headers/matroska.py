"""Finds out which audio tracks of a Matroska or WebM file are encrypted (RFC 9559, section 5.1.4.1.31)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

EBML = b"\x1a\x45\xdf\xa3"
"""How these files begin."""
_SEGMENT, _CLUSTER, _TRACKS, _ENTRY, _TYPE = 0x18538067, 0x1F43B675, 0x1654AE6B, 0xAE, 0x83
_ENCODINGS, _ENCODING, _ENCRYPTION, _ALGORITHM = 0x6D80, 0x6240, 0x5035, 0x47E1
_AUDIO = 2
_MOST_BYTES = 1 << 24
"""Of what describes the tracks."""
_LONGEST_HEAD = 12


class _Element(NamedTuple):
    name: int
    start: int
    """Of what it holds."""
    size: int | None
    """None: unknown, as in a live stream."""


def encrypted_tracks(file: BinaryIO) -> tuple[bool, ...]:
    """Return for each audio track whether it is encrypted; none if that is not to be found out."""
    for segment in _within(file, 0):
        if segment.name != _SEGMENT:
            continue
        for element in _within(file, segment.start):
            if element.name == _TRACKS and (element.size or 0) <= _MOST_BYTES:
                file.seek(element.start)
                return tuple(_are_encrypted(file.read(element.size or 0)))
            if element.name == _CLUSTER and element.size is None:
                break
        break
    return ()


def _within(file: BinaryIO, place: int) -> Iterator[_Element]:
    """Yield the elements of a file from `place` to its end, or to one whose size is unknown."""
    end = file.seek(0, os.SEEK_END)
    while place < end:
        file.seek(place)
        element = _element(file.read(_LONGEST_HEAD))
        if element is None:
            return
        yield element._replace(start=place + element.start)
        if element.size is None:
            return
        place += element.start + element.size


def _are_encrypted(tracks: bytes) -> Iterator[bool]:
    for entry in _named(tracks, _ENTRY):
        if any(int.from_bytes(kind, "big") == _AUDIO for kind in _named(entry, _TYPE)):
            encodings = (
                one for encodings in _named(entry, _ENCODINGS) for one in _named(encodings, _ENCODING)
            )
            yield any(map(_is_encryption, encodings))


def _is_encryption(encoding: bytes) -> bool:
    """Tell whether an encoding of a track encrypts it; algorithm 0 only signs it."""
    return any(
        any(int.from_bytes(algorithm, "big") for algorithm in _named(encryption, _ALGORITHM))
        for encryption in _named(encoding, _ENCRYPTION)
    )


def _named(parent: bytes, name: int) -> Iterator[bytes]:
    """Yield what each child of that name holds."""
    place = 0
    while (child := _element(parent[place : place + _LONGEST_HEAD])) is not None and child.size is not None:
        if child.name == name:
            yield parent[place + child.start : place + child.start + child.size]
        place += child.start + child.size


def _element(head: bytes) -> _Element | None:
    """Return the element that begins so; None if none does (RFC 8794, sections 4 and 5)."""
    length = 9 - head[0].bit_length() if head else 0
    if not 1 <= length <= 4 or length >= len(head):
        return None
    name, width = int.from_bytes(head[:length], "big"), 9 - head[length].bit_length()
    if width > 8 or length + width > len(head):
        return None
    size = int.from_bytes(head[length : length + width], "big") - (1 << 7 * width)
    return _Element(name, length + width, None if size == (1 << 7 * width) - 1 else size)
