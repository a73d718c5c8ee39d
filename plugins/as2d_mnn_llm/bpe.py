"""BPE of bytes, or of characters with bytes for what is no token, loaded from a `tokenizer.json`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers import Tokenizer as BpeTokenizer
from tokenizers.models import BPE

from as2d_cli.plugin import BYTE_OF, ModelError, read_json

TOKENIZER_FILE: Final = "tokenizer.json"
SPECIALS_FILE: Final = "specials.json"
SPACE: Final = "▁"
"""How SentencePiece writes a space in tokens."""
_BYTE: Final = re.compile("<0x([0-9A-F]{2})>")
"""How it names a token that stands for a byte."""
_MAX_ID: Final = 1 << 20
"""Four times what any vocabulary has; the library takes memory for all ids up to the largest."""
_QWEN2: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def qwen_words() -> Any:  # noqa: ANN401
    """Return the pre-tokenizer of all Qwen models."""
    words = pre_tokenizers.Split(Regex(_QWEN2), "isolated")
    raw_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([words, raw_bytes])


def token_id(value: object) -> int:
    """Return what a file gives as the id of a token. Raises `ValueError` if it can be none."""
    if type(value) is not int or not 0 <= value < _MAX_ID:
        raise ValueError(f"{value!r} is no id of a token")
    return value


@contextmanager
def no_panic() -> Iterator[None]:
    """Turn a panic of the library, which is no `Exception` and has no public name, into a `ValueError`."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"it makes the library panic: {error}") from error


def check_vocabulary(vocabulary: Mapping[str, object]) -> None:
    """Raise `ValueError` unless every token has an id of its own: the library panics at two with one id."""
    if len({token_id(value) for value in vocabulary.values()}) != len(vocabulary):
        raise ValueError("two tokens have the same id")


def check(bpe: BpeTokenizer) -> None:
    """Raise `ValueError` for a tokenizer that would make of a text whatever its file says."""
    if not isinstance(bpe.model, BPE):
        raise ValueError("it is no BPE")
    if not (bpe.normalizer is None or isinstance(bpe.normalizer, normalizers.NFC)):
        raise ValueError("it changes texts before it encodes them")


class LlmTokenizer:
    """A BPE: ordinary text <-> ids, and the ids of special tokens by name.

    One that falls back to bytes has characters in its tokens, as SentencePiece's do; the others have bytes.
    """

    def __init__(self, bpe: BpeTokenizer, specials: Mapping[str, int]) -> None:
        self._bpe = bpe
        self._has_characters = bool(bpe.model.byte_fallback)
        self._specials = dict(specials)
        self._special_ids = frozenset(specials.values())

    @classmethod
    def load(cls, folder: Path) -> LlmTokenizer:
        """Load what was written from a GGUF file. Raises `ModelError`."""
        try:
            specials = {name: token_id(at) for name, at in read_json(folder / SPECIALS_FILE).items()}
            bpe = BpeTokenizer.from_file(str(folder / TOKENIZER_FILE))
            check(bpe)
            return cls(bpe, specials)
        except Exception as error:  # tokenizers raises bare Exception for a bad file
            raise ModelError(f"{folder}: not a usable tokenizer: {error}", "as2d models verify") from error

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the vocabulary, the merges and how text is cut before them."""
        content = json.loads(self._bpe.to_str())
        parts = [content["model"]["vocab"], content["model"]["merges"], content["pre_tokenizer"]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def size(self) -> int:
        """Ids there are, special ones included."""
        return max(self._bpe.get_vocab_size(), 1 + max(self._special_ids, default=0))

    def special(self, name: str) -> int:
        """Return the id of a special token. Raises `ModelError` if the model has none of that name."""
        if name not in self._specials:
            raise ModelError(f"the tokenizer has no token {name}")
        return self._specials[name]

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` as ordinary text: special tokens in it are not recognised."""
        if self._has_characters:
            text = text.replace(" ", SPACE)
        return list(self._bpe.encode(text, add_special_tokens=False).ids)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the UTF-8 bytes of `ids`; special and unknown ids give nothing."""
        return b"".join(self._token_bytes(int(token)) for token in ids)

    def _token_bytes(self, token: int) -> bytes:
        text = None if token in self._special_ids or token < 0 else self._bpe.id_to_token(token)
        if text and self._has_characters:
            byte = _BYTE.fullmatch(text)
            return bytes([int(byte[1], 16)]) if byte else text.replace(SPACE, " ").encode()
        try:
            return bytes(BYTE_OF[char] for char in text) if text else b""
        except KeyError as error:
            raise ModelError(f"the tokenizer's token {token} does not stand for bytes") from error
