"""What stands for which inputs: files, folders, patterns, lists, standard input."""

import io
import os
import sys
from pathlib import Path

import pytest

from as2d_cli.audio.sources import open_file
from as2d_cli.batch.inputs import find_inputs
from as2d_cli.domain.errors import AudioError, RequestError
from as2d_cli.system.addresses import address


@pytest.fixture
def place(tmp_path, monkeypatch, sound):
    """Work in a folder of recordings, with other things between them."""
    monkeypatch.chdir(tmp_path)
    for name in ("talks/b.wav", "talks/a.wav", "talks/deep/c.wav", "talks/.hidden.wav", "talks/.git/d.wav"):
        sound(name, 0.2)
    (tmp_path / "talks" / "deep" / "notes.md").write_text("no sound")
    (tmp_path / "talks" / "cover.jpg").write_bytes(b"\xff\xd8\xff\xe0 no sound")
    (tmp_path / "talks" / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nno sound\n")
    return tmp_path


def paths(inputs):
    return [str(one.path) for one in inputs.found]


def test_a_folder_gives_the_audio_in_and_below_it_sorted_and_counts_the_rest(place):
    inputs = find_inputs(["talks"])
    assert paths(inputs) == ["talks/a.wav", "talks/b.wav", "talks/deep/c.wav"]
    assert [str(one.subfolder) for one in inputs.found] == [".", ".", "deep"]
    assert inputs.notes == ("talks: ignored 2 files that are no audio",)


@pytest.mark.parametrize("given", ["s3:/in.wav", "s3:", "s3:/*.wav", "s*/*.wav", "s3*", ".", "./s3:/in.wav"])
def test_a_folder_here_that_ends_in_a_colon_is_never_taken_for_a_store(tmp_path, monkeypatch, sound, given):
    monkeypatch.chdir(tmp_path)
    sound("s3:/in.wav", 0.2)
    (one,) = find_inputs([given]).found
    assert (one.error, one.path.absolute()) == (None, tmp_path / "s3:" / "in.wav")
    assert address(one.path) is None
    assert one.subfolder == Path("s3:" if given == "." else "")


def test_in_a_folder_content_counts_and_not_the_name(place):
    (place / "talks" / "a.wav").rename(place / "talks" / "recording")
    assert paths(find_inputs(["talks"]))[:2] == ["talks/b.wav", "talks/recording"]


def test_a_broken_recording_in_a_folder_is_not_passed_over_in_silence(place):
    (place / "talks" / "broken.m4a").write_bytes(b"")
    assert "talks/broken.m4a" in paths(find_inputs(["talks"]))


@pytest.mark.parametrize(
    "name",
    [
        "d.wav.part",
        "d.crdownload",
        "d.wav.!qB",
        "d.f140.m4a.part-Frag3",
        "D.WAV.PART",
        "d.wav.download/d.wav",
    ],
)
def test_partial_downloads_in_a_folder_are_left_out_and_counted(place, sound, name):
    sound(f"talks/{name}", 0.2)
    inputs = find_inputs(["talks"])
    assert paths(inputs) == ["talks/a.wav", "talks/b.wav", "talks/deep/c.wav"]
    assert inputs.notes == ("talks: ignored 2 files that are no audio and 1 partial download",)
    assert paths(find_inputs([f"talks/{name}"])) == [f"talks/{name}"]  # given by name it is meant


def test_a_folder_without_audio_is_an_error(place):
    (place / "empty").mkdir()
    (one,) = find_inputs(["empty"]).found
    assert isinstance(one.error, AudioError)
    assert one.error.message == "empty: there is no audio in this folder"


def test_links_are_followed_but_not_in_circles(place):
    (place / "talks" / "deep" / "up").symlink_to(place / "talks")
    (place / "more").mkdir()
    (place / "more" / "link").symlink_to(place / "talks" / "deep")
    assert paths(find_inputs(["talks"])) == ["talks/a.wav", "talks/b.wav", "talks/deep/c.wav"]
    assert "more/link/c.wav" in paths(find_inputs(["more"]))


def test_an_empty_name_does_not_mean_the_whole_current_folder(place):
    (one,) = find_inputs([""]).found
    assert "an empty name" in one.error.message


def test_a_link_to_itself_is_one_failure_and_not_the_end(place):
    folder = place / "links"
    folder.mkdir()
    (folder / "self.wav").symlink_to("self.wav")
    (folder / "nowhere.wav").symlink_to("nothing")
    found = find_inputs([str(folder)]).found
    assert [one.path.name for one in found] == ["nowhere.wav", "self.wav"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_told(place):
    folder = place / "private"
    folder.mkdir(mode=0)
    errors = [one.error.message for one in find_inputs([str(place)]).found if one.error]
    assert any("cannot be read" in message for message in errors)


def test_patterns_are_expanded_sorted_and_reach_into_folders(place):
    assert paths(find_inputs(["talks/*.wav"])) == ["talks/a.wav", "talks/b.wav"]
    assert paths(find_inputs(["**/*.wav"])) == ["talks/a.wav", "talks/b.wav", "talks/deep/c.wav"]
    assert paths(find_inputs([str(place / "talks" / "[ab].wav")])) == [
        str(place / "talks" / name) for name in ("a.wav", "b.wav")
    ]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(place, sound):
    sound("[ab].wav", 0.2), sound("a.wav", 0.2)
    assert paths(find_inputs(["[ab].wav"])) == ["[ab].wav"]


def test_a_pattern_without_a_match_is_an_error_of_its_own(place):
    good, bad = find_inputs(["talks/a.wav", "*.flac"]).found
    assert good.error is None
    assert bad.error.message == "*.flac: no such file, and nothing matches it as a pattern"


def test_the_order_is_that_of_what_was_given(place):
    assert paths(find_inputs(["talks/b.wav", "talks/deep", "talks/a.wav"], ["x.wav"])) == [
        "talks/b.wav",
        "talks/deep/c.wav",
        "talks/a.wav",
        "x.wav",
    ]


def test_listed_paths_are_never_patterns_nor_standard_input(place, sound):
    (place / "-").write_bytes(sound("a.wav", 0.2).read_bytes())
    dash, pattern = find_inputs([], ["-", "*.wav"]).found
    assert (dash.stream, dash.error) == (None, None)
    assert (str(pattern.path), pattern.error) == ("*.wav", None)  # not found, which is told later


def test_standard_input_can_be_given_once(place):
    with pytest.raises(RequestError, match="given twice"):
        find_inputs(["-", "-"])


def test_standard_input_is_kept_so_that_it_can_seek(place, monkeypatch):
    ours, theirs = os.pipe()
    os.write(theirs, (place / "talks" / "a.wav").read_bytes())
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        (one,) = find_inputs(["-"]).found
    with one.stream as stream:
        assert one.name == "stdin"
        assert stream.seekable()
        assert stream.read() == (place / "talks" / "a.wav").read_bytes()


def test_where_there_is_no_standard_input_that_is_a_failure_of_its_own(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (one,) = find_inputs(["-"]).found
    assert "stdin: cannot be read" in one.error.message
    with pytest.raises(AudioError, match="is empty"):
        open_file(io.BytesIO())


def test_a_terminal_is_no_audio(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    with pytest.raises(RequestError, match="that is a terminal"):
        find_inputs(["-"])
