"""Tokenizers of checkpoints and exports, in whichever form these have them, as one `tokenizer.json`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer, decoders, normalizers
from tokenizers.models import BPE

from as2d_cli.plugin import ModelError, read_json
from as2d_mnn_llm.bpe import LlmTokenizer, check, check_vocabulary, no_panic, qwen_words, token_id

_FILE: Final = "tokenizer.json"
_MNN_FILE: Final = "tokenizer.txt"
_MNN_WITH_MERGES: Final = ("430", "3")
"""How a `tokenizer.txt` of llmexport begins that holds vocabulary and merges as the checkpoint has them."""
_UNUSED: Final = ("post_processor", "padding", "truncation")
"""What could make any number of tokens of a text, or cut it."""
_MARKS: Final = ("continuing_subword_prefix", "end_of_word_suffix", "dropout")
"""What byte-level BPE has no use for; the library panics at a prefix that is longer than a token."""


def load_hub_tokenizer(folder: Path) -> LlmTokenizer:
    """Return the tokenizer that `take_tokenizer` put into `folder`. Raises `ModelError`."""
    path = folder / _FILE
    try:
        content = read_json(path)
        added = {item["content"]: token_id(item["id"]) for item in content["added_tokens"]}
        check_vocabulary(content["model"]["vocab"])
        content["model"] |= dict.fromkeys(_MARKS)
        # Without them the BPE cannot recognise a special token in a text.
        with no_panic():
            bpe = Tokenizer.from_str(json.dumps({**content, **dict.fromkeys(_UNUSED), "added_tokens": []}))
        check(bpe)
    except Exception as error:  # tokenizers raises bare Exception for a bad file
        raise ModelError(f"{path}: not a usable tokenizer: {error}", "as2d models verify") from error
    return LlmTokenizer(bpe, added)


def take_tokenizer(source: Path, destination: Path) -> None:
    """Write the tokenizer of the model in `source` as `tokenizer.json` into `destination`.

    It is that file itself, or made of `vocab.json`, `merges.txt` and `tokenizer_config.json`, or of the
    `tokenizer.txt` of an export; then it is taken to be one of Qwen's. Raises `ModelError`.
    """
    try:
        if (source / _FILE).is_file():
            shutil.copyfile(source / _FILE, destination / _FILE)
        elif (source / "vocab.json").is_file():
            _write(*_read_checkpoint(source), destination / _FILE)
        elif (source / _MNN_FILE).is_file():
            _write(*_read_export(source / _MNN_FILE), destination / _FILE)
        else:
            raise ModelError(
                f"{source}: no tokenizer that can be read",
                "copy tokenizer.json there from the checkpoint that was exported",
            )
    except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise ModelError(f"{source}: its tokenizer is broken: {error}", "fetch the model again") from error


def _read_checkpoint(source: Path) -> tuple[Mapping[str, int], Sequence[str], Mapping[str, int]]:
    vocabulary = read_json(source / "vocab.json")
    merges = (source / "merges.txt").read_text(encoding="utf-8").split("\n")
    config = read_json(source / "tokenizer_config.json")
    added = {item["content"]: int(number) for number, item in config["added_tokens_decoder"].items()}
    return vocabulary, merges, added


def _read_export(path: Path) -> tuple[Mapping[str, int], Sequence[str], Mapping[str, int]]:
    """Read what llmexport writes: kind; counts; ids of special tokens; sizes; tokens in order; merges."""
    lines = path.read_text(encoding="utf-8").split("\n")
    if tuple(lines[0].split()) != _MNN_WITH_MERGES:
        raise ValueError(f"{path.name} has no merges")
    n_special = int(lines[1].split()[0])
    special = [int(number) for number in lines[2].split()[:n_special]]
    n_tokens, n_merges = (int(size) for size in lines[3].split())
    tokens, merges = lines[4 : 4 + n_tokens], lines[4 + n_tokens : 4 + n_tokens + n_merges]
    added = {tokens[number]: number for number in special}
    vocabulary = {token: number for number, token in enumerate(tokens) if token not in added}
    return vocabulary, merges, added


def _write(
    vocabulary: Mapping[str, int], merges: Sequence[str], added: Mapping[str, int], path: Path
) -> None:
    pairs = [(first, second) for first, _, second in (line.partition(" ") for line in merges) if second]
    pairs = [pair for pair in pairs if pair[0] != "#version:"]  # the first line of merges.txt
    try:
        check_vocabulary(vocabulary)
        with no_panic():
            bpe = Tokenizer(BPE(dict(vocabulary), pairs))
    except Exception as error:  # tokenizers raises bare Exception for merges without their token
        raise ValueError(f"vocabulary and merges do not fit: {error}") from error
    bpe.normalizer = normalizers.NFC()
    bpe.pre_tokenizer = qwen_words()
    bpe.decoder = decoders.ByteLevel()
    tokens = [{"id": number, "content": token, "special": True} for token, number in added.items()]
    content = {**json.loads(bpe.to_str()), "added_tokens": tokens}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
