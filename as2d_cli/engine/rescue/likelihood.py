"""Tells how sure a target is of a text that it has written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from as2d_cli.decoding.protocols import ScoringSession

_ROWS = 24
"""Most tokens that a session scores at a time."""


def mean_log_probability(session: ScoringSession, tokens: Sequence[int]) -> float:
    """Return the mean natural logarithm of the probabilities of `tokens`, the committed text with its end.

    All that the model may say counts, also what rules forbid. The session ends as it was when it opened.
    """
    opened = len(session.prompt) - 1
    session.rollback(opened)
    rows = [session.prompt[-1], *tokens[:-1]]
    total = 0.0
    for start in range(0, len(rows), _ROWS):
        scores = session.scores(rows[start : start + _ROWS]).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        chosen = scores[np.arange(len(scores)), tokens[start : start + _ROWS]]
        total += float(np.sum(chosen - np.log(np.exp(scores).sum(axis=1))))
    session.rollback(opened)
    return total / len(tokens)
