from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.decoding.distance import end_costs


def textbook(pattern, text, free_start):
    row = [0 if free_start else index for index in range(len(text) + 1)]
    for depth, wanted in enumerate(pattern, start=1):
        above, row = row, [depth]
        for index, token in enumerate(text):
            row.append(min(above[index] + (token != wanted), above[index + 1] + 1, row[-1] + 1))
    return row


def test_no_pattern_is_as_far_as_the_text_is_long_or_no_way_at_all():
    assert end_costs([], [5, 6]) == [0, 1, 2]
    assert end_costs([], [5, 6], free_start=True) == [0, 0, 0]


@given(st.lists(st.integers(0, 4), max_size=80), st.lists(st.integers(0, 4), max_size=100), st.booleans())
def test_the_bit_parallel_distance_equals_the_textbook_table(pattern, text, free_start):
    assert end_costs(pattern, text, free_start=free_start) == textbook(pattern, text, free_start)
