"""The greedy choice: the best token of each row."""

from __future__ import annotations

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
