"""What the headers of uncompressed containers state: where the audio begins, and how long it is.

WAV and RF64 (EBU Tech 3306), RIFX (WAV with its numbers the other way round), AIFF and AIFC (Apple, 1989 and
1991), Sony's Wave64, Apple's CAF, and Sun's AU.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

_UNKNOWN = 0xFFFFFFFF
"""What AU states if the size is unknown."""
_AIFC_BYTES = {b"ulaw": 1, b"alaw": 1, b"ULAW": 1, b"ALAW": 1, b"fl32": 4, b"FL32": 4, b"fl64": 8, b"FL64": 8}
"""Of a sample, where that is not what `COMM` states in bits."""
_AIFC_PLAIN = frozenset({b"NONE", b"sowt", b"twos", b"raw ", b"in24", b"in32", b"23ni"})
_AU_BYTES = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1}


class Chunks(NamedTuple):
    """How a container writes its chunks."""

    head: struct.Struct
    """Name and size."""
    align: int = 2
    counts_head: bool = False
    """Whether a chunk's size includes its head."""

    def is_name(self, name: bytes) -> bool:
        """Tell whether this may be the name of a chunk; any GUID may."""
        return self.counts_head or all(0x20 <= byte < 0x7F for byte in name)

    @property
    def most_bytes(self) -> int:
        """Largest size that can be written."""
        return (1 << 32) - 1 if self.head.size == 8 else (1 << 63) - 1

    def read(self, head: bytes) -> tuple[bytes, int]:
        """Return the name of a chunk, of a GUID its first letters, and the size of what it holds."""
        name, size = self.head.unpack(head)
        return name[:4], size - self.head.size if self.counts_head else size

    def within(self, head: bytes, place: int) -> Iterator[tuple[bytes, int, int]]:
        """Yield name, place and size of what each chunk from `place` on holds."""
        while place + self.head.size <= len(head):
            name, size = self.read(head[place : place + self.head.size])
            if size < 0:
                return
            place += self.head.size
            yield name, place, size
            place += size + -size % self.align


class Size(NamedTuple):
    """A number in a header that follows from the bytes of audio: their count by `per`, and `more`."""

    place: int
    kind: str
    """As `struct` has it."""
    more: int = 0
    per: int = 1


class Audio(NamedTuple):
    """The audio of a file, as its header has it."""

    chunks: Chunks
    start: int
    """Where it begins."""
    stated: int
    """Bytes of it."""
    bytes_per_s: float
    block: int
    """Bytes of one sample of all channels, or of what is encoded together."""
    beginning: bytes
    """What to read before it."""
    sizes: tuple[Size, ...]
    """Where its size stands in `beginning`."""

    def header(self, n_bytes: int) -> bytes | None:
        """Return what to read before so many bytes of audio, None if it cannot state so many."""
        header = bytearray(self.beginning)
        try:
            for place, kind, more, per in self.sizes:
                struct.pack_into(kind, header, place, n_bytes // per + more)
        except struct.error:
            return None
        return bytes(header)


_RIFF, _RIFX = Chunks(struct.Struct("<4sI")), Chunks(struct.Struct(">4sI"))
_W64 = Chunks(struct.Struct("<16sQ"), align=8, counts_head=True)
_CAF = Chunks(struct.Struct(">4sq"), align=1)


def found(head: bytes) -> Audio | None:
    """Return what the beginning of a file tells of its audio, None if it makes no sense here."""
    read = _READERS.get(head[:4])
    try:
        audio = read(head) if read else None
    except (struct.error, OverflowError):  # cut off, or numbers that nobody writes
        return None
    return audio if audio and audio.block > 0 and audio.bytes_per_s > 0 else None


def _wav(head: bytes) -> Audio | None:
    """Keep of what stands before the audio what readers need, in RF64, which takes any size."""
    if head[8:12] != b"WAVE":
        return None
    kept, stated_64, format_ = b"", None, b""
    for name, start, size in _RIFF.within(head, 12):
        body = head[start : start + size]
        if name == b"data":
            bytes_per_s, block = _format(format_, "<")
            beginning = b"RF64\xff\xff\xff\xffWAVEds64" + struct.pack("<I", 28) + bytes(28)
            sizes = (Size(20, "<Q", len(kept) + 48), Size(28, "<Q"), Size(36, "<Q", per=block or 1))
            beginning += kept + b"data\xff\xff\xff\xff"
            stated = size if stated_64 is None else stated_64
            return Audio(_RIFF, start, stated, bytes_per_s, block, beginning, sizes)
        if name == b"ds64":
            stated_64 = int.from_bytes(body[8:16], "little")
            continue
        format_ = body if name == b"fmt " else format_
        kept += head[start - 8 : start + size + size % 2]
    return None


def _rifx(head: bytes) -> Audio | None:
    if head[8:12] != b"WAVE":
        return None
    format_ = b""
    for name, start, size in _RIFX.within(head, 12):
        format_ = head[start : start + size] if name == b"fmt " else format_
        if name == b"data":
            sizes = (Size(4, ">I", start - 8), Size(start - 4, ">I"))
            return Audio(_RIFX, start, size, *_format(format_, ">"), head[:start], sizes)
    return None


def _w64(head: bytes) -> Audio | None:
    format_ = b""
    for name, start, size in _W64.within(head, 40):
        format_ = head[start : start + size] if name == b"fmt " else format_
        if name == b"data":
            sizes = (Size(16, "<Q", start), Size(start - 8, "<Q", _W64.head.size))
            return Audio(_W64, start, size, *_format(format_, "<"), head[:start], sizes)
    return None


def _format(body: bytes, order: str) -> tuple[int, int]:
    """Return the bytes in a second and in a block that a chunk `fmt ` states. Raises `struct.error`."""
    rate, bytes_per_s, block = struct.unpack_from(f"{order}IIH2x", body, 4)
    return bytes_per_s or rate * block, block


def _aiff(head: bytes) -> Audio | None:
    common = None
    for name, start, size in _RIFX.within(head, 12):
        common = start if name == b"COMM" else common
        if name == b"SSND" and common is not None:
            n_channels, bits, exponent, mantissa = struct.unpack_from(">h4xhHQ", head, common)
            kind = head[common + 18 : common + 22] if head[8:12] == b"AIFC" else b"NONE"
            n_bytes = -(-bits // 8) if kind in _AIFC_PLAIN else _AIFC_BYTES.get(kind, 0)
            block = n_channels * n_bytes
            first = start + 8 + int.from_bytes(head[start : start + 4], "big")
            sizes = (
                *(Size(4, ">I", first - 8), Size(start - 4, ">I", first - start)),
                Size(common + 2, ">I", per=block or 1),
            )
            bytes_per_s = block * mantissa * 2.0 ** (exponent - 16383 - 63)
            return Audio(_RIFX, first, size - (first - start), bytes_per_s, block, head[:first], sizes)
    return None


def _caf(head: bytes) -> Audio | None:
    rate, block, frames = 0.0, 0, 0
    for name, start, size in _CAF.within(head, 8):
        if name == b"desc":
            rate, block, frames = struct.unpack_from(">d8xII", head, start)
        if name == b"data" and frames == 1:  # in a packet: it is not compressed
            first, sizes = start + 4, (Size(start - 8, ">q", 4),)
            return Audio(_CAF, first, size - 4, rate * block, block, head[:first], sizes)
    return None


def _au(head: bytes) -> Audio | None:
    order = ">" if head[:4] == b".snd" else "<"
    start, stated, encoding, rate, n_channels = struct.unpack_from(f"{order}5I", head, 4)
    if stated == _UNKNOWN or start > len(head):
        return None
    block = n_channels * _AU_BYTES.get(encoding, 0)
    return Audio(_RIFX, start, stated, rate * block, block, head[:start], (Size(8, f"{order}I"),))


_READERS: dict[bytes, Callable[[bytes], Audio | None]] = {
    b"RIFF": _wav,
    b"RF64": _wav,
    b"RIFX": _rifx,
    b"FORM": _aiff,
    b"riff": _w64,
    b"caff": _caf,
    b".snd": _au,
    b"dns.": _au,
}
"""By the first four bytes of the file."""
