import numpy as np
import pytest

from as2d_cli.decoding.greedy import best_of_rows
from as2d_cli.domain.errors import DecodeError


def test_the_best_of_each_row_is_chosen_and_the_lowest_on_a_tie():
    rows = np.array([[0, 2, 1], [3, -np.inf, 3]], np.float32)
    assert best_of_rows(rows).tolist() == [1, 0]


def test_a_row_with_a_nan_has_no_best_token():
    rows = np.array([[0, 2, 1], [0, np.nan, 1]], np.float32)
    with pytest.raises(DecodeError, match="not a number"):
        best_of_rows(rows)
