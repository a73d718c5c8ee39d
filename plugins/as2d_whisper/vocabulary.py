"""Cuts an English drafter's vocabulary to the tokens that English needs most.

The vocabulary head is the largest layer of a small decoder. A draft may be wrong, so a drafter does
without rare tokens: it then writes such a word in more pieces, or another word.

`english_tokens.txt` ranks tokens by measured frequency; tools/measure/english_tokens.py made it from
wordfreq's data (Robyn Speer, CC BY-SA 4.0, the licence of that file, too).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError
from as2d_whisper.checkpoint import Checkpoint
from as2d_whisper.tokenizer import WhisperTokenizer

_BYTES = 256
"""Ids below it are single bytes: with them any text can be written."""
KEPT_FILE = "vocabulary.npy"
"""Ids of the rows of a cut vocabulary head, in a converted model that has one."""
_HEAD = "decoder/projection/weight"


def kept_tokens(tokenizer: WhisperTokenizer, size: int, forbidden: Collection[int]) -> NDArray[np.int64]:
    """Return `size` ids in ascending order: all single bytes, the commonest tokens, and the end id.

    None of the `forbidden` ones, which are never written. Raises `ModelError` for a size that cannot be.
    """
    listed = resources.files("as2d_whisper").joinpath("english_tokens.txt").read_text(encoding="utf-8")
    ranked = [tokenizer.token(name) for name in listed.split()]
    wanted = [
        token
        for token in dict.fromkeys([*range(_BYTES), *ranked])
        if token is not None and token not in forbidden
    ]
    if not _BYTES < size <= len(wanted) + 1:
        raise ModelError(
            f"option vocabulary is {size}", f"give a number from {_BYTES + 1} to {len(wanted) + 1}"
        )
    return np.array(sorted([*wanted[: size - 1], tokenizer.end_id]), np.int64)


def with_head_of(checkpoint: Checkpoint, kept: NDArray[np.int64]) -> Checkpoint:
    """Return the checkpoint with only these rows of the vocabulary head."""
    return replace(checkpoint, tensors={**checkpoint.tensors, _HEAD: checkpoint[_HEAD][kept]})
