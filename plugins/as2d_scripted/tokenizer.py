"""A tokenizer small enough to read: whole words where it knows them, bytes elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

_WORDS = (
    " a about after all and are as at be but by can come could day do even first for from get give go good"
    " have he her him his how i if in into is it its just know like look make me most my new no not now of"
    " on one only or other our out over people say see she so some take than that the their them then there"
    " these they think this time to two up us use want way we well what when which who will with work would"
    " year you your"
)
WORDS = tuple(_WORDS.split())
"""Words that the `words` tokenizer knows, each one token with the space before it."""

_PIECE = re.compile(r" ?[^ ]+| ")


class ScriptedTokenizer:
    """Ids 0..255 are bytes; with `words`, ids from 256 on are " word" for the words of `WORDS`."""

    def __init__(self, *, words: bool = True) -> None:
        self._pieces = [bytes([value]) for value in range(256)]
        if words:
            self._pieces += [f" {word}".encode() for word in WORDS]
        self._ids = {piece: index for index, piece in enumerate(self._pieces)}
        self.fingerprint = hashlib.sha256(b"\n".join(self._pieces)).hexdigest()

    @property
    def size(self) -> int:
        """Number of text ids; special ids come after them."""
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = []
        for match in _PIECE.finditer(text):
            piece = match.group().encode()
            ids += [self._ids[piece]] if piece in self._ids else piece
        return ids

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`; special ids give b''."""
        return b"".join(self._pieces[index] for index in ids if 0 <= index < self.size)
