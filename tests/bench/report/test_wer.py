import pytest

from as2d_cli.bench.report.wer import word_errors


def test_errors_are_pooled_over_files_and_windows_put_together_in_order(make_trial):
    trials = [
        make_trial(window=1, text=" second part."),
        make_trial(window=0, text=" The first and"),
        make_trial(window=2, file="b.wav", text=" wrong"),
        make_trial(window=0, repeat=1, text=" of another repeat"),
    ]
    errors = word_errors(trials, {"a.wav": ("the first and second part", "en"), "b.wav": ("right", "en")})
    assert errors.rate == pytest.approx(1 / 6)
    assert errors.files == 2


def test_files_that_were_not_decoded_and_empty_references_do_not_count(make_trial):
    trials = [make_trial(text=" hello")]
    assert word_errors(trials, {"other.wav": ("hello", "en")}) is None
    assert word_errors(trials, {"a.wav": ("[music]", "en")}) is None


def test_english_numbers_are_normalised_and_others_left(make_trial):
    trials = [make_trial(text=" twenty one colours")]
    assert word_errors(trials, {"a.wav": ("21 colors", "en")}).rate == 0
    assert word_errors(trials, {"a.wav": ("21 colors", "de")}).rate > 0
