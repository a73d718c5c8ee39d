"""Writes the BPE that a GGUF file describes as a `tokenizer.json`: one of bytes, or SentencePiece's.

The pre-tokenizers are those of llama.cpp (`llm_tokenizer_bpe`), by the name that the file gives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from tokenizers import AddedToken, normalizers, pre_tokenizers
from tokenizers import Tokenizer as BpeTokenizer
from tokenizers.models import BPE

from as2d_cli.plugin import ModelError
from as2d_mnn_llm.bpe import SPACE, SPECIALS_FILE, TOKENIZER_FILE, no_panic, qwen_words
from as2d_mnn_llm.chat import MARKS
from as2d_mnn_llm.gguf.file import GgufFile

_ORDINARY: Final = 1
"""Type of tokens that text is made of; most others are told to the model and never written as text."""
_ADDED: Final = 4
_BYTE: Final = 6
"""In SentencePiece's vocabularies: tokens that text becomes before others, and ones that stand for a byte."""
_LONGEST: Final = 256
"""Characters of a token, far more than any has: each place in it is tried as a seam."""
_BEGINS_WITH_SPACE: Final = "tokenizer.ggml.add_space_prefix"


def _smollm() -> Any:  # noqa: ANN401 - the classes of tokenizers have no common type
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])


_PRE: Final = {"smollm": _smollm, "qwen2": qwen_words}
_NORMALISED: Final = {"qwen2"}
"""Pre-tokenizers before which text is brought into Unicode's form C."""


def write_tokenizer(file: GgufFile, folder: Path) -> None:
    """Write the tokenizer of a GGUF file into `folder`. Raises `ModelError` for one of another kind."""
    kind, pre = file.text("tokenizer.ggml.model"), file.text("tokenizer.ggml.pre")
    tokens, types = file.texts("tokenizer.ggml.tokens"), file.integers("tokenizer.ggml.token_type")
    if len(types) != len(tokens):
        raise _misfit(file)
    if kind == "gpt2" and pre in _PRE:
        bpe = _of_bytes(file, tokens, pre)
        specials = {token: number for number, token in enumerate(tokens) if types[number] != _ORDINARY}
    elif kind == "llama" and pre == "default" and file.metadata.get(_BEGINS_WITH_SPACE) is False:
        bpe, specials = _of_characters(file, tokens, types)
    else:
        raise ModelError(
            f"{file.path}: tokenizer {kind!r} with pre-tokenizer {pre!r} is not known",
            f"use a model with tokenizer gpt2 and one of: {', '.join(_PRE)}; or a Gemma 3",
        )
    bpe.save(str(folder / TOKENIZER_FILE), pretty=False)
    (folder / SPECIALS_FILE).write_text(json.dumps(specials, ensure_ascii=False), encoding="utf-8")


def _of_bytes(file: GgufFile, tokens: Sequence[str], pre: str) -> BpeTokenizer:
    merges = [merge.partition(" ")[::2] for merge in file.texts("tokenizer.ggml.merges")]
    if not all(map(all, merges)):
        raise _misfit(file)
    bpe = _bpe(file, BPE, {token: number for number, token in enumerate(tokens)}, merges)
    bpe.pre_tokenizer = _PRE[pre]()
    if pre in _NORMALISED:
        bpe.normalizer = normalizers.NFC()
    return bpe


def _of_characters(
    file: GgufFile, tokens: Sequence[str], types: Sequence[int]
) -> tuple[BpeTokenizer, dict[str, int]]:
    """Return SentencePiece's BPE, and the special tokens: those that no text may become."""
    tokens = [token.replace(" ", SPACE) for token in tokens]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    unknown, scores = file.integer("tokenizer.ggml.unknown_token_id"), file.numbers("tokenizer.ggml.scores")
    if not len(vocabulary) == len(tokens) == len(scores) or not 0 <= unknown < len(tokens):
        raise _misfit(file)
    ordinary = {token: scores[number] for token, number in vocabulary.items() if types[number] == _ORDINARY}
    if any(len(token) > _LONGEST for token in ordinary):
        raise _misfit(file)
    whole = partial(BPE, unk_token=tokens[unknown], fuse_unk=True, byte_fallback=True)
    bpe = _bpe(file, whole, vocabulary, _merges(ordinary, vocabulary))
    added = [token for number, token in enumerate(tokens) if types[number] == _ADDED and token not in MARKS]
    bpe.add_tokens([AddedToken(token, normalized=False) for token in added])
    texts = {*ordinary, *added}
    specials = {
        token: number for token, number in vocabulary.items() if token not in texts and types[number] != _BYTE
    }
    return bpe, specials


def _merges(scores: Mapping[str, float], ids: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the merges that lead to tokens, best score first; of one token by the ids of the parts.

    SentencePiece keeps the scores alone. The order is that of transformers' converter (`generate_merges`).
    """
    found = []
    for token, score in scores.items():
        for at in range(1, len(token)):
            one, two = token[:at], token[at:]
            if one in scores and two in scores:
                found.append((-score, ids[one], ids[two], one, two))
    return [(one, two) for *_, one, two in sorted(found)]


def _bpe(
    file: GgufFile,
    make: Callable[[dict[str, int], list[tuple[str, str]]], BPE],
    vocabulary: dict[str, int],
    merges: list[tuple[str, str]],
) -> BpeTokenizer:
    try:
        with no_panic():
            return BpeTokenizer(make(vocabulary, merges))
    except Exception as error:  # tokenizers raises bare Exception for merges without their token
        raise ModelError(f"{file.path}: not a usable tokenizer: {error}") from error


def _misfit(file: GgufFile) -> ModelError:
    return ModelError(f"{file.path}: tokens, their types, scores and merges do not fit together")
