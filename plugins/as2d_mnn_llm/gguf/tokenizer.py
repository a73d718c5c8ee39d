"""Writes the byte-level BPE that a GGUF file describes as a `tokenizer.json`.

The pre-tokenizers are those of llama.cpp (`llm_tokenizer_bpe`), by the name that the file gives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer as BpeTokenizer
from tokenizers import normalizers, pre_tokenizers
from tokenizers.models import BPE

from as2d_cli.plugin import ModelError
from as2d_mnn_llm.bpe import SPECIALS_FILE, TOKENIZER_FILE, no_panic, qwen_words
from as2d_mnn_llm.gguf.file import GgufFile

_ORDINARY: Final = 1
"""Type of tokens that text is made of; the others are told to the model and never written as text."""


def _smollm() -> Any:  # noqa: ANN401 - the classes of tokenizers have no common type
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])


_PRE: Final = {"smollm": _smollm, "qwen2": qwen_words}
_NORMALISED: Final = {"qwen2"}
"""Pre-tokenizers before which text is brought into Unicode's form C."""


def write_tokenizer(file: GgufFile, folder: Path) -> None:
    """Write the tokenizer of a GGUF file into `folder`. Raises `ModelError` for one of another kind."""
    model, pre = file.text("tokenizer.ggml.model"), file.text("tokenizer.ggml.pre")
    if model != "gpt2" or pre not in _PRE:
        raise ModelError(
            f"{file.path}: tokenizer {model!r} with pre-tokenizer {pre!r} is not known",
            f"use a model with tokenizer gpt2 and one of: {', '.join(_PRE)}",
        )
    tokens, types = file.texts("tokenizer.ggml.tokens"), file.integers("tokenizer.ggml.token_type")
    merges = [merge.partition(" ")[::2] for merge in file.texts("tokenizer.ggml.merges")]
    if len(types) != len(tokens) or not all(map(all, merges)):
        raise ModelError(f"{file.path}: tokens, their types and merges do not fit together")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    try:
        with no_panic():
            bpe = BpeTokenizer(BPE(vocabulary, merges))
    except Exception as error:  # tokenizers raises bare Exception for merges without their token
        raise ModelError(f"{file.path}: not a usable tokenizer: {error}") from error
    bpe.pre_tokenizer = _PRE[pre]()
    if pre in _NORMALISED:
        bpe.normalizer = normalizers.NFC()
    bpe.save(str(folder / TOKENIZER_FILE), pretty=False)
    specials = {token: number for number, token in enumerate(tokens) if types[number] != _ORDINARY}
    (folder / SPECIALS_FILE).write_text(json.dumps(specials, ensure_ascii=False), encoding="utf-8")
