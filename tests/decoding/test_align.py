import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.decoding import Aligner
from as2d_cli.domain.errors import DecodeError

MODES = ["hybrid", "edit", "ngram", "none"]
REALIGNING = ["hybrid", "edit", "ngram"]


def aligned(draft, *steps, mode="hybrid", complete=True):
    aligner = Aligner(mode)
    aligner.feed(draft, complete=complete)
    for tokens in steps:
        aligner.observe(tokens)
    return aligner


def test_agreement_moves_the_cursor_and_the_run():
    aligner = aligned([1, 2, 3, 4], [1], [2, 3])
    assert (aligner.cursor, aligner.run, aligner.seen) == (3, 3, 4)


@pytest.mark.parametrize("mode", REALIGNING)
@pytest.mark.parametrize(
    ("draft", "target", "resumes_at"),
    [
        ([1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4], 4),
        ([1, 2, 9, 4, 5, 6, 7], [1, 2, 3, 4], 4),
        ([1, 2, 9, 8, 3, 4, 5], [1, 2, 3, 4], 6),
        ([1, 2, 4, 5, 6, 7, 8], [1, 2, 3, 4], 3),
        ([9, 8, 1, 2, 3, 4, 5], [1, 2, 3, 4], 6),
    ],
    ids=["none", "substitution", "insertion", "omission", "intro"],
)
def test_errors_of_the_draft_are_followed(mode, draft, target, resumes_at):
    aligner = aligned(draft, *([token] for token in target), mode=mode)
    assert aligner.cursor == resumes_at


def test_a_substitution_is_followed_at_once():
    aligner = aligned([1, 2, 3, 4, 5, 6], [1, 2, 3, 9], mode="edit")
    assert (aligner.cursor, aligner.run) == (4, 0)


def test_none_gives_up_at_the_first_error():
    assert aligned([1, 2, 3, 4], [1], [9], [3], mode="none").cursor is None


def test_a_repeated_word_does_not_pull_the_cursor_away():
    """As in "no no no"."""
    draft = [1, 7, 7, 7, 2, 3, 4, 5]
    aligner = aligned(draft, [1, 7, 7, 2], [3], mode="hybrid")
    assert aligner.cursor == 6


def test_running_out_of_draft_is_not_going_astray():
    """Exhausted and diverged are two states."""
    aligner = aligned([1, 2], [1, 2, 3], [4], complete=False)
    exhausted = aligner.cursor
    aligner.feed([3, 4, 5], complete=False)
    assert (exhausted, aligner.cursor, aligner.run) == (2, 4, 4)


def test_owed_tokens_are_compared_as_the_draft_arrives_and_an_error_among_them_is_followed():
    aligner = aligned([1, 2], [1, 2, 3], [4], [5], [6], complete=False)
    aligner.feed([3], complete=False)
    aligner.feed([9, 5, 6, 7], complete=False)
    assert aligner.cursor == 6


@pytest.mark.parametrize("mode", ["hybrid", "edit"])
def test_a_drafter_far_behind_is_not_asked_for_stale_tokens(mode):
    """All published tokens have already been passed."""
    text = list(range(100))
    aligner = aligned(
        text[:3], [0, 1, 2], [77], *([token] for token in text[4:40]), mode=mode, complete=False
    )
    for start in range(3, 39, 3):
        aligner.feed(text[start : start + 3], complete=False)
        assert aligner.cursor == aligner.seen, "what has been published is behind the target"
    aligner.feed(text[39:60], complete=False)
    assert aligner.cursor == 40


def test_a_looping_draft_is_left_by_the_jump():
    """The drafter said five words ten times and then went on."""
    text = list(range(60))
    draft = text[:15] + text[10:15] * 9 + text[15:]
    aligner = aligned(draft, text[:10], text[10:15], *([token] for token in text[15:21]))
    assert aligner.cursor == draft.index(20) + 1


def test_an_omitted_section_is_left_by_the_jump():
    """The drafter left out fifty words."""
    text = list(range(120))
    draft = text[:20] + text[70:]
    aligner = aligned(draft, text[:20], *([token] for token in text[20:76]))
    assert aligner.cursor == draft.index(75) + 1


def test_a_jump_goes_back_when_the_target_says_again_what_the_draft_said_once():
    text = list(range(50))
    aligner = aligned(text, text, *([token] for token in text[5:12]))
    assert aligner.cursor == 12


def test_an_ambiguous_far_jump_is_not_taken():
    filler = list(range(100, 160))
    draft = [*filler, 1, 2, 3, 50, *range(200, 230), 1, 2, 3, 60]
    aligner = aligned(draft, [7], [1], [2], [3])
    assert aligner.cursor is not None
    assert aligner.cursor < 30, "two equally good places far away: stay"


def test_ngram_resumes_only_after_what_occurs_once():
    assert aligned([1, 2, 5, 2, 6, 7], [9], [2], mode="ngram").cursor is None
    assert aligned([1, 2, 5, 2, 6, 7], [9], [2], [6], mode="ngram").cursor == 5


def test_an_unknown_mode_is_an_error_that_names_the_known_ones():
    with pytest.raises(DecodeError) as error:
        Aligner("magic")
    assert "hybrid" in error.value.hint


tokens = st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3), max_size=20)


@given(st.lists(st.tuples(st.booleans(), tokens, st.booleans()), max_size=30), st.sampled_from(MODES))
def test_an_aligner_survives_anything_and_its_cursor_stays_in_the_draft(events, mode):
    aligner = Aligner(mode)
    for is_draft, ids, complete in events:
        if is_draft:
            aligner.feed(ids, complete=complete)
        else:
            aligner.observe(ids)
        assert aligner.cursor is None or 0 <= aligner.cursor <= aligner.seen
        assert aligner.run >= 0


@pytest.mark.parametrize("mode", MODES)
def test_an_aligner_stays_cheap_while_it_is_lost(mode):
    """The cost per step must not grow with the text."""
    draw = random.Random(1)
    aligner = Aligner(mode)
    aligner.feed([draw.randrange(30) for _ in range(450)], complete=True)
    began = time.process_time()
    for _ in range(300):
        aligner.observe([draw.randrange(30)])
    assert (time.process_time() - began) / 300 < 0.003
