"""Where a window's words leave it uncovered."""

import pytest

from as2d_cli.domain.types import Span, Word
from as2d_cli.engine.rescue.coverage import uncovered


def words(*spans):
    return [Word(" word", start_s, end_s) for start_s, end_s in spans]


@pytest.mark.parametrize(
    ("spans", "found"),
    [
        ([(0.2, 1.0), (1.1, 2.0), (2.9, 4.0)], []),
        ([(0.2, 1.0)], [(1.0, 5.0)]),
        ([(3.0, 4.0)], [(0.0, 3.0)]),
        ([(0.2, 1.0), (3.1, 4.0)], [(1.0, 3.1)]),
        ([(0.2, 1.0), (1.0, 4.0), (4.1, 4.9)], [(1.0, 4.1)]),
        ([(0.2, 1.0), (1.0, 2.3), (2.3, 4.0), (4.1, 4.9)], [(1.0, 4.1)]),
        ([], [(0.0, 5.0)]),
    ],
)
def test_it_is_uncovered_where_no_word_is_or_one_that_is_too_long(spans, found):
    assert list(uncovered(words(*spans), 5.0)) == [Span(*span) for span in found]
