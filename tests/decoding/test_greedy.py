import numpy as np
import pytest

from as2d_cli.decoding.greedy import best_of_rows, logprobs_of
from as2d_cli.domain.errors import DecodeError


def test_the_best_of_each_row_is_chosen_and_the_lowest_on_a_tie():
    rows = np.array([[0, 2, 1], [3, -np.inf, 3]], np.float32)
    assert best_of_rows(rows).tolist() == [1, 0]


def test_a_row_with_a_nan_has_no_best_token():
    rows = np.array([[0, 2, 1], [0, np.nan, 1]], np.float32)
    with pytest.raises(DecodeError, match="not a number"):
        best_of_rows(rows)


def test_a_log_probability_is_that_of_the_best_column_among_those_that_are_allowed():
    rows = np.array([[0, np.log(2), 0, -np.inf], [5, -np.inf, -np.inf, -np.inf]], np.float32)
    assert np.exp(logprobs_of(rows, [1, 0])).tolist() == pytest.approx([0.5, 1.0])


def test_great_logits_overflow_nothing():
    rows = np.array([[1e38, 0, -1e38]], np.float32)
    assert logprobs_of(rows, [0]).tolist() == [0.0]


def test_a_row_has_the_same_bits_whatever_rows_are_with_it_and_wherever_it_lies():
    rows = np.random.default_rng(0).normal(0, 4, (24, 1003)).astype(np.float32)
    best = best_of_rows(rows[:, :1001])
    together = logprobs_of(rows[:, :1001], best)
    alone = [logprobs_of(rows[at : at + 1, :1001].copy(), best[at : at + 1])[0] for at in range(24)]
    assert together.tolist() == alone
