"""Whisper's byte-level BPE with its special tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as BpeTokenizer
from tokenizers.models import BPE

from as2d_cli.plugin import BYTE_OF, ModelError, read_json

_MAX_ID = 1 << 20
"""Twenty times what there are; the library takes memory for all ids up to the largest."""
_MARKS = ("continuing_subword_prefix", "end_of_word_suffix", "dropout")
"""The library panics at such a prefix that is longer than a token, and at two tokens of the same id."""
_FIRST_MERGE_ID = 256  # ids below are the single bytes


class WhisperTokenizer:
    """Ordinary text <-> ids, and the ids of the special tokens by name."""

    def __init__(self, path: Path) -> None:
        """Load a `tokenizer.json`. Raises `ModelError`."""
        self._path = path
        try:
            content = read_json(path)
            self._added = _ids((item["content"], item["id"]) for item in content["added_tokens"])
            self._ids = _ids(content["model"]["vocab"].items())
            if content.get("normalizer") is not None:
                raise ValueError("it changes texts before it encodes them")
            if len(set(self._ids.values())) < len(self._ids) or any(map(content["model"].get, _MARKS)):
                raise ValueError("it is no plain vocabulary")
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ModelError(f"{path}: not a usable tokenizer: {error}") from error
        self._names = {token: name for name, token in self._ids.items()}
        self.end_id = self.special("<|endoftext|>")
        self._bytes: dict[int, bytes] = {}

    def special(self, name: str) -> int:
        """Return the id of a special token. Raises `ModelError` if the model has none of that name."""
        if name not in self._added:
            raise ModelError(f"the tokenizer has no token {name}")
        return self._added[name]

    def has_special(self, name: str) -> bool:
        """Tell whether a special token exists."""
        return name in self._added

    def token(self, name: str) -> int | None:
        """Return the id of an ordinary token by its name in the vocabulary, None if there is none."""
        return self._ids.get(name)

    @cached_property
    def _bpe(self) -> BpeTokenizer:
        """What encodes; not loaded with the rest, as plain decoding has no use for it."""
        try:
            bpe = BpeTokenizer.from_buffer(self._path.read_bytes())
            if not isinstance(bpe.model, BPE):
                raise ValueError("it is no BPE")
            bpe.no_padding()  # either could make any number of tokens of a text
            bpe.no_truncation()
            return bpe
        except BaseException as error:  # tokenizers raises bare Exception for a bad file, or panics
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise ModelError(f"{self._path}: not a usable tokenizer: {error}") from error

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the vocabulary and the merge order."""
        text = json.loads(self._bpe.to_str())["model"]
        return hashlib.sha256(json.dumps([text["vocab"], text["merges"]]).encode()).hexdigest()

    @cached_property
    def languages(self) -> dict[str, int]:
        """Language code -> id of its token, in vocabulary order."""
        start, stop = self.special("<|startoftranscript|>"), self._added.get("<|translate|>", 0)
        return {
            name[2:-2]: token
            for name, token in sorted(self._added.items(), key=lambda item: item[1])
            if start < token < stop
        }

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` as ordinary text: special tokens in it are not recognised."""
        pieces = text.split("<|")  # a special token cannot be written without its bracket
        ids: list[int] = []
        for index, piece in enumerate(pieces):
            bracket = self._encode("<") + self._encode("|") if index else []
            ids += bracket + self._encode(piece)
        return ids

    def _encode(self, text: str) -> list[int]:
        return list(self._bpe.encode(text, add_special_tokens=False).ids)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the UTF-8 bytes of `ids`; special ids give nothing."""
        return b"".join(self._token_bytes(int(token)) for token in ids)

    def _token_bytes(self, token: int) -> bytes:
        if token not in self._bytes:
            text = self._names.get(token) if 0 <= token < self.end_id else None
            try:
                self._bytes[token] = bytes(BYTE_OF[char] for char in text) if text else b""
            except KeyError as error:
                raise ModelError(f"{self._path}: token {token} does not stand for bytes") from error
        return self._bytes[token]


def _ids(tokens: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the ids of tokens by name. Raises `ValueError` for what can be no name or no id."""
    found = dict(tokens)
    for name, token in found.items():
        if type(name) is not str or type(token) is not int or not 0 <= token < _MAX_ID:
            raise ValueError(f"{name!r} cannot be token {token!r}")
    return found


def repair_tokenizer(source: Path, destination: Path) -> None:
    """Copy a `tokenizer.json`, putting back a lost first merge. Raises `ModelError`.

    The widespread file of multilingual Whisper lacks the first BPE merge ("Ġ t"): decoding is
    unaffected, but " the" would be *encoded* as two tokens. Merge i creates id 256 + i, so the
    loss shows where the first merge does not create id 256.
    """
    try:
        content = read_json(source)
        vocab, merges = content["model"]["vocab"], content["model"]["merges"]
        by_id = {token_id: token for token, token_id in vocab.items()}
        first = by_id[_FIRST_MERGE_ID]
        pair = merges[0] if isinstance(merges[0], list) else merges[0].split(" ")
        if "".join(pair) == by_id.get(_FIRST_MERGE_ID + 1) and len(first) == 2:
            lost = [first[0], first[1]]
            merges.insert(0, lost if isinstance(merges[0], list) else " ".join(lost))
        repaired = json.dumps(content, ensure_ascii=False).encode()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{source}: not a BPE tokenizer file: {error}") from error
    destination.write_bytes(repaired)
