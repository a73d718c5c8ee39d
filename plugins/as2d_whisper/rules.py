"""Which tokens Whisper may not write. Greedy choice is made row by row under these rules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import TokenIds, best_of_rows
from as2d_whisper.model import WhisperModel


class Rules:
    """The model's suppression lists (openai/whisper `decoding.py`: SuppressTokens, SuppressBlank).

    Special tokens, timestamps among them, have ids above the end token; text is written without
    timestamps, so none of them is ever allowed.
    """

    def __init__(self, model: WhisperModel) -> None:
        """Take the lists from the model's facts."""
        end = model.tokenizer.end_id
        self.allowed = end + 1
        """Columns of the logits, from the first, that tokens are chosen from."""
        self._always = np.array([token for token in model.facts.suppress if 0 <= token < end], np.intp)
        self._first = np.array([token for token in model.facts.suppress_begin if 0 <= token <= end], np.intp)

    def choose(self, logits: NDArray[np.float32], first_row: int | None) -> TokenIds:
        """Return the greedy allowed token of each row, the lowest id on a tie.

        `logits` has shape (rows, vocab) and is overwritten; `first_row` is the row, if any, that
        decides the first token of the text. Raises DecodeError if there are no numbers in a row.
        """
        text = logits[:, : self.allowed]
        text[:, self._always] = -np.inf
        if first_row is not None:
            text[first_row, self._first] = -np.inf
        best: TokenIds = best_of_rows(text).astype(np.int32)
        return best
