"""Turns a drafter's tokens into the target's vocabulary while they arrive.

BPE is not prefix-stable: the ids of a text can change when it goes on. So text is held back up to
the last place where the target's tokenizer must split it, and what has been given out is final.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from as2d_cli.decoding.protocols import Tokenizer

# GPT-2's and Qwen's pre-tokenizers both begin a piece at a space that is followed by a non-space.
_WORD_START = re.compile(r" (?=\S)")

# Scripts written without spaces: Thai to Tibetan's neighbours, Khmer, CJK with its punctuation and kana.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_SPACELESS_MARGIN = 6
"""Characters that may still change the ids before them; merges of such scripts are shorter."""


class Retokenizer:
    """Converts one draft, token by token, append-only.

    With equal tokenizers ids pass through; special ids and ids from `vocab_size` up are dropped.
    Otherwise the drafter's text is encoded anew at word starts, and inside spaceless scripts at
    token borders a few characters back. For ordinary text this gives the ids of the whole text.
    Style (leading space, case) is the drafter plugin's business.
    """

    def __init__(self, drafter: Tokenizer, target: Tokenizer, vocab_size: int) -> None:
        self._drafter = drafter
        self._target = target
        self._vocab_size = vocab_size
        self._same = drafter.fingerprint == target.fingerprint
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, ids: Sequence[int]) -> list[int]:
        """Take drafter ids; return the target ids that are certain now."""
        if self._same:
            return [i for i in ids if i < self._vocab_size and self._drafter.decode_bytes([i])]
        self._held += self._bytes.decode(self._drafter.decode_bytes(ids))
        return self._release_words() + self._release_spaceless()

    def flush(self) -> list[int]:
        """Return the ids of the text still held; the bytes of an unfinished character are dropped."""
        self._bytes.reset()
        text, self._held = self._held, ""
        return self._encode(text)

    def _release_words(self) -> list[int]:
        border = max((match.start() for match in _WORD_START.finditer(self._held)), default=0)
        text, self._held = self._held[:border], self._held[border:]
        return self._encode(text)

    def _release_spaceless(self) -> list[int]:
        borders = self._spaceless_borders()
        if not borders:
            return []
        # A border between two tokens of BPE's result is one that no merge has crossed, so both
        # sides encode alone as they do together.
        ids = self._encode(self._held)
        size, best = 0, (0, 0)
        for count, token in enumerate(ids, start=1):
            size += len(self._target.decode_bytes([token]))
            if size in borders:
                best = (count, borders[size])
        if size != len(self._held.encode()):
            return []  # this tokenizer rewrites text, so its borders say nothing
        count, border = best
        self._held = self._held[border:]
        return ids[:count]

    def _spaceless_borders(self) -> dict[int, int]:
        """UTF-8 offset -> character offset of the borders inside spaceless text that may be cut."""
        held, borders, size = self._held, {}, 0
        for index in range(1, len(held) - _SPACELESS_MARGIN + 1):
            size += len(held[index - 1].encode())
            if _SPACELESS.match(held[index - 1]) and _SPACELESS.match(held[index]):
                borders[size] = index
        return borders

    def _encode(self, text: str) -> list[int]:
        return self._target.encode(text) if text else []
