import pytest

from as2d_cli.decoding.repetition import LoopDetector, has_loop


def first_alarm(tokens):
    detector = LoopDetector()
    return next((index for index, token in enumerate(tokens) if detector.push(token)), None)


@pytest.mark.parametrize("period", [1, 2, 5, 6, 7, 16])
def test_a_loop_is_noticed_after_four_rounds_and_twenty_four_tokens(period):
    intro = list(range(100, 140))
    loop = list(range(period)) * 40
    assert first_alarm(intro + loop) == len(intro) + max(4 * period, 24) - 1


def test_a_refrain_said_three_times_is_not_a_loop():
    assert first_alarm([*list(range(16)) * 3, 99]) is None


def test_a_word_said_twenty_three_times_is_not_a_loop():
    assert first_alarm([1, *[7] * 23, 2]) is None


def test_a_broken_loop_starts_counting_anew():
    assert first_alarm([*[7] * 20, 8, *[7] * 20, 8]) is None


@pytest.mark.parametrize(("period", "rounds"), [(1, 24), (3, 8), (16, 4), (17, 3), (64, 3)])
def test_a_finished_text_with_a_loop_anywhere_is_found(period, rounds):
    before, after = list(range(100, 130)), list(range(200, 230))
    loop = list(range(period)) * rounds
    assert has_loop([*before, *loop, *after])
    assert not has_loop([*before, *loop[:-1], *after])


def test_short_and_ordinary_texts_have_no_loop():
    assert not has_loop([])
    assert not has_loop([1])
    assert not has_loop([5, 5, 5, 5])
    assert not has_loop(list(range(200)))
