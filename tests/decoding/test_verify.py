import pytest

from as2d_cli.decoding.verify import count_accepted, cut


@pytest.mark.parametrize(
    ("decided", "candidates", "accepted"),
    [([7], [], 0), ([7, 8], [7], 1), ([7, 8], [6], 0), ([7, 8, 9], [7, 9], 1), ([7, 8, 9], [8, 8], 0)],
)
def test_candidates_count_up_to_the_first_that_the_target_would_not_have_chosen(
    decided, candidates, accepted
):
    assert count_accepted(decided, candidates) == accepted


@pytest.mark.parametrize(
    ("tokens", "limit", "kept"),
    [
        ([5, 0, 6], 9, (5, 0)),
        ([5, 6, 0], 2, (5, 6)),
        ([0, 0], 9, (0,)),
        ([5, 6], 2, (5, 6)),
        ([5, 0], 1, (5,)),
    ],
)
def test_tokens_are_cut_after_the_end_and_at_the_limit_whichever_comes_first(tokens, limit, kept):
    assert cut(tokens, end_id=0, limit=limit) == kept
