"""The greedy choice: the best token of each row, and how probable it was."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.errors import DecodeError


def best_of_rows(logits: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the best column of each row, the lowest one on a tie; `logits` has shape (rows, columns).

    Raises DecodeError if a row holds NaN. numpy takes the first NaN for the best: a model that has overflowed
    would say the same token for ever.
    """
    best: NDArray[np.intp] = logits.argmax(axis=1)
    if np.isnan(logits[np.arange(len(best)), best]).any():
        raise DecodeError("the model's output is not a number", "are its files whole? as2d models verify")
    return best


def logprobs_of(logits: NDArray[np.float32], best: Iterable[int]) -> NDArray[np.float32]:
    """Return the log-probability of the best column of each row, shape (len(best),), 0 or less.

    `logits` has shape (rows, columns), and at least as many rows as there are in `best`. The probability is
    that among all columns; one at -inf has none. Rows are summed one by one, so a row has the same bits
    whatever rows are with it.
    """
    return np.array([_logprob(row, column) for row, column in zip(logits, best, strict=False)], np.float32)


def _logprob(row: NDArray[np.float32], best: int) -> np.float32:
    shares = row - row[best]  # at most 0: nothing overflows
    np.exp(shares, out=shares)
    logprob: np.float32 = np.float32(0.0) - np.log(shares.sum())
    return logprob
