"""Recognises audio that is encrypted for a shop's or a service's own players: no reader can decode it."""

from __future__ import annotations

import os
import re
import struct
from typing import BinaryIO
from uuid import UUID

from as2d_cli.audio.headers import matroska

_ISO_BEGINNINGS = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"})
_SOUND_FORMAT = re.compile(rb"hdlr.{8}soun.*?stsd.{12}(.{4})", re.DOTALL)
"""In the `moov` box: a track that is sound, and what its samples are (ISO 14496-12, 8.4.3 and 8.5.2)."""
_PROTECTED_FORMATS = frozenset({b"enca", b"drms", b"aavd"})
"""Common Encryption of MP4, Apple's FairPlay (.m4p), Audible (.aax)."""
_MOST_MOOV_BYTES = 64 << 20
_AUDIBLE = b"\x57\x90\x75\x36"
"""At the fifth byte of .aa files."""
_ASF = UUID("75b22630-668e-11cf-a6d9-00aa0062ce6c").bytes_le
_ASF_ENCRYPTION = (
    UUID("2211b3fb-bd23-11d2-b4b7-00a0c955fc6e").bytes_le,
    UUID("298ae614-2622-4c17-b935-dae07ee9289c").bytes_le,
)
"""Objects in the head of a protected .wma."""
_ASF_HEAD_BYTES = 1 << 16


def protected_tracks(file: BinaryIO) -> tuple[bool, ...]:
    """Return for each audio track whether it is encrypted, as far as the container says; none if it does not.

    A part of a track's samples may be left in the clear, as the first seconds often are.
    """
    file.seek(0)
    head = file.read(_ASF_HEAD_BYTES)
    if head.startswith(_ASF):
        return (any(mark in head for mark in _ASF_ENCRYPTION),)
    if head.startswith(matroska.EBML):
        return matroska.encrypted_tracks(file)
    if head[4:8] in _ISO_BEGINNINGS:
        return tuple(kind in _PROTECTED_FORMATS for kind in _SOUND_FORMAT.findall(_moov(file)))
    return (head[4:8] == _AUDIBLE,)


def _moov(file: BinaryIO) -> bytes:
    """Return the box that describes the tracks, nothing if there is none."""
    place, end = 0, file.seek(0, os.SEEK_END)
    while place + 8 <= end:
        file.seek(place)
        head = file.read(16)
        size, name = struct.unpack_from(">I4s", head)
        if size == 1 and len(head) == 16:
            (size,) = struct.unpack_from(">Q", head, 8)
        if name == b"moov":
            file.seek(place)
            return file.read(min(size or _MOST_MOOV_BYTES, _MOST_MOOV_BYTES))
        if size < 8:  # the last box, or no box
            break
        place += size
    return b""
