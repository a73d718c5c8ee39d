import pytest

from as2d_cli.bench.report.identity import first_difference


def test_equal_texts_have_no_difference(results):
    assert first_difference(results.trials) is None
    assert first_difference([]) is None


@pytest.mark.parametrize(
    ("tokens", "place", "expected", "found"),
    [((5, 9, 7), 1, 6, 9), ((5, 6), 2, 7, None), ((5, 6, 7, 8), 3, None, 8), ((), 0, 5, None)],
)
def test_the_first_wrong_token_is_told(make_trial, tokens, place, expected, found):
    trials = [
        make_trial(),
        make_trial("as2d"),
        make_trial("sd-2", repeat=1, tokens=tokens),
        make_trial("sd-4", tokens=()),
    ]
    difference = first_difference(trials)
    assert (difference.mode, difference.repeat) == ("sd-2", 1)
    assert (difference.place, difference.expected, difference.found) == (place, expected, found)
    assert "sd-2" in str(difference)
    assert "a.wav" in str(difference)


def test_a_target_that_contradicts_itself_is_caught(make_trial):
    assert first_difference([make_trial(), make_trial(repeat=1, tokens=(1,))]).mode == "target-only"
