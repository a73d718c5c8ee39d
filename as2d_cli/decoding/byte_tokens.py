"""A tokenizer without a vocabulary, for drafters that make text and no tokens."""

from __future__ import annotations

from collections.abc import Sequence


class ByteTokenizer:
    """Ids 0..255 are the bytes of UTF-8."""

    fingerprint = "bytes"

    def encode(self, text: str) -> list[int]:
        """Return the bytes of `text`."""
        return list(text.encode())

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`; those from 256 up are special and give b''."""
        return bytes(token for token in ids if 0 <= token < 256)
