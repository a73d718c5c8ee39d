import numpy as np
import pytest

from as2d_cli.decoding import (
    EMPTY,
    PRIOR,
    Controller,
    FixedBudget,
    Hazard,
    PassageAligner,
    decode,
    finished_draft,
)
from as2d_cli.testing import ScriptedSession

END = 99


def found(passages, *steps):
    finder = PassageAligner()
    finder.feed(passages, complete=True)
    for tokens in steps:
        finder.observe(tokens)
    return finder


def test_the_longest_match_wins_wherever_it_is():
    finder = found([1, 2, 8, END, 5, 1, 2, 7, END], [9, 5], [1, 2])
    assert (finder.cursor, finder.run) == (7, 3)


def test_of_equally_long_matches_the_first_counts():
    assert found([1, 2, 3, END, 1, 2, 4, END], [1, 2]).cursor == 2


def test_what_occurs_nowhere_leaves_nothing_to_propose():
    finder = found([1, 2, 3], [1, 2], [7])
    assert (finder.cursor, finder.run) == (None, 0)
    finder.observe([1])
    assert (finder.cursor, finder.run) == (1, 1)


def test_a_match_at_the_very_end_is_none():
    assert found([1, 2, 3], [2, 3]).cursor is None


def test_before_the_first_token_the_first_passage_is_proposed():
    assert (found([4, 5]).cursor, found([4, 5]).run) == (0, 0)


def test_a_match_may_begin_with_the_first_token_of_the_passages():
    assert found([4, 5, 6], [4, 5]).run == 2


def test_nothing_in_nothing_is_found():
    assert found([], [1]).cursor is None
    assert found([1], [1]).cursor is None


def decoded(script, passages, policy):
    session = ScriptedSession([*script, END], prompt=[100], vocab_size=101, max_tokens=500)
    draft = finished_draft(passages, 101) if passages else EMPTY
    stands_still = float  # so that passes cost what they usually do
    steps = list(decode(session, draft, PassageAligner(), policy, end_id=END, clock=stands_still))
    return [token for step in steps for token in step.tokens], steps


@pytest.mark.parametrize("budget", [1, 7, 23])
def test_no_passages_change_the_text(budget):
    noise = np.random.default_rng(5)
    for _ in range(30):
        script = noise.integers(0, 12, 60).tolist()
        passages = noise.integers(0, 12, 300).tolist() + script[20:50]
        assert decoded(script, passages, FixedBudget(budget))[0] == [*script, END]


def test_a_passage_said_again_in_every_file_takes_few_passes():
    noise = np.random.default_rng(6)

    def said(count):
        return noise.integers(0, 98, count).tolist()

    boilerplate = said(40)
    passages = [token for _ in range(5) for token in (*said(60), *boilerplate, *said(60), END)]
    _, steps = decoded([*said(10), *boilerplate, *said(10)], passages, FixedBudget(15))
    assert len(steps) < 30


def test_where_nothing_fits_hardly_anything_is_proposed():
    noise = np.random.default_rng(7)
    policy = Controller(hazard=Hazard(PRIOR))
    for _ in range(4):
        script, passages = noise.integers(0, 98, 150).tolist(), noise.integers(0, 98, 2000).tolist()
        _, steps = decoded(script, passages, policy)
        assert sum(step.proposed for step in steps) <= 1.25 * len(steps), "one candidate is free"
