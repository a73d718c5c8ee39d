"""How sure a target is of its text, from the logits of a session."""

import math

import numpy as np
import pytest

from as2d_cli.engine.rescue.likelihood import mean_log_probability

VOCABULARY = 10


class Session:
    """After each token, the next one of `text` has the odds that belong to its place, all others 1."""

    def __init__(self, text, odds):
        self.prompt = (7, 8)
        self._next, self._odds = text, odds
        self.length, self.calls = 5, []

    def rollback(self, length):
        self.length = length

    def scores(self, tokens):
        assert len(tokens) <= 24
        first = self.length - 1
        assert list(tokens) == [8, *self._next][first : first + len(tokens)]
        self.length += len(tokens)
        logits = np.zeros((len(tokens), VOCABULARY), np.float32)
        for row in range(len(tokens)):
            logits[row, self._next[first + row]] = math.log(self._odds[first + row])
        return logits


@pytest.mark.parametrize("length", [1, 23, 24, 25, 60])
def test_it_is_the_mean_over_all_tokens_however_many(length):
    text = [index % VOCABULARY for index in range(length)]
    odds = [1 + index for index in range(length)]
    session = Session(text, odds)
    expected = np.mean([math.log(odd / (odd + VOCABULARY - 1)) for odd in odds])
    assert mean_log_probability(session, text) == pytest.approx(expected, abs=1e-6)
    assert session.length == 1
