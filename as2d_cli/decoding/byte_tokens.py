"""Tokens and the bytes of UTF-8: a tokenizer without a vocabulary, and how byte-level BPE spells bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final


class ByteTokenizer:
    """Ids 0..255 are the bytes of UTF-8."""

    fingerprint = "bytes"

    def encode(self, text: str) -> list[int]:
        """Return the bytes of `text`."""
        return list(text.encode())

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`; those from 256 up are special and give b''."""
        return bytes(token for token in ids if 0 <= token < 256)


def _byte_alphabet() -> dict[str, int]:
    printable = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(rest)}


BYTE_OF: Final[Mapping[str, int]] = _byte_alphabet()
"""Bytes by the printable character that stands for each in vocabularies like GPT-2's (its `encoder.py`)."""
