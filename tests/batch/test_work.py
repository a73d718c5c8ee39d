"""How much there is to do, by what files say of themselves."""

from pathlib import Path

import pytest

from as2d_cli.batch.inputs import Input
from as2d_cli.batch.work import StdinBytes, windows_in


@pytest.mark.parametrize(("lengths", "windows"), [([5], 1), ([30], 1), ([31], 2), ([95, 2], 5), ([], 0)])
def test_windows_are_counted_by_the_lengths_of_files(sound, lengths, windows):
    inputs = [Input(sound(f"{number}.wav", length)) for number, length in enumerate(lengths)]
    assert windows_in(inputs, 100) == windows


def test_no_more_files_are_opened_than_it_takes_to_know_enough(sound):
    inputs = [Input(sound("a.wav", 95)), Input(Path("missing.wav"))]
    assert windows_in(inputs, 3) == 3


def test_what_does_not_say_how_long_it_is_counts_as_a_window(tmp_path):
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    inputs = [
        Input(tmp_path / "broken.wav"),
        Input(tmp_path / "missing.wav"),
        Input(Path("-"), stream=StdinBytes(b"")),
        Input(Path("s3://bucket/a.wav")),
    ]
    assert windows_in(inputs, 100) == 4
