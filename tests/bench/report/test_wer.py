import pytest

from as2d_cli.bench.report.wer import word_errors


def test_errors_are_pooled_over_files_and_windows_put_together_in_order(make_row):
    rows = [
        make_row(window=1, text=" second part."),
        make_row(window=0, text=" The first and"),
        make_row(window=2, file="b.wav", text=" wrong"),
        make_row(window=0, repeat=1, text=" of another repeat"),
    ]
    errors = word_errors(rows, {"a.wav": ("the first and second part", "en"), "b.wav": ("right", "en")})
    assert errors.rate == pytest.approx(1 / 6)
    assert errors.files == 2


def test_files_that_were_not_decoded_and_empty_references_do_not_count(make_row):
    rows = [make_row(text=" hello")]
    assert word_errors(rows, {"other.wav": ("hello", "en")}) is None
    assert word_errors(rows, {"a.wav": ("[music]", "en")}) is None


def test_english_numbers_are_normalised_and_others_left(make_row):
    rows = [make_row(text=" twenty one colours")]
    assert word_errors(rows, {"a.wav": ("21 colors", "en")}).rate == 0
    assert word_errors(rows, {"a.wav": ("21 colors", "de")}).rate > 0
