import json
from pathlib import Path

import pytest

from as2d_cli.bench.run.clips import Clip, find_clips, read_windows
from as2d_cli.domain.errors import RequestError


def manifest(folder, *entries):
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    (folder / "manifest.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")


def test_a_folder_gives_what_its_manifest_lists(tmp_path):
    manifest(tmp_path, {"file": "a.wav", "text": "one\u2028two", "lang": "en"}, {"file": "b.wav"})
    clips = find_clips([tmp_path, Path("c.wav")])
    assert clips == [
        Clip(tmp_path / "a.wav", "one\u2028two", "en"),
        Clip(tmp_path / "b.wav"),
        Clip(Path("c.wav")),
    ]


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    with pytest.raises(RequestError, match=r"manifest\.jsonl: cannot be read"):
        find_clips([tmp_path])


@pytest.mark.parametrize("line", ["{", "[]", '{"text": "no file"}'])
def test_a_broken_manifest_is_named_with_its_line(tmp_path, line):
    (tmp_path / "manifest.jsonl").write_text('{"file": "a.wav"}\n' + line)
    with pytest.raises(RequestError, match="line 2"):
        find_clips([tmp_path])


def test_an_empty_manifest_leaves_nothing_to_measure_on(tmp_path):
    manifest(tmp_path)
    with pytest.raises(RequestError, match="nothing to measure on"):
        find_clips([tmp_path])


def test_windows_know_their_file_and_whether_they_end_it(sound):
    clips = [Clip(sound("long.wav", 65.0)), Clip(sound("short.wav"), language="de")]
    windows, notes = read_windows(clips, known=("en", "de"))
    assert notes == []
    assert [window.index for window in windows] == list(range(len(windows)))
    assert [window.group for window in windows] == [0] * (len(windows) - 1) + [1]
    assert [window.last for window in windows] == [False] * (len(windows) - 2) + [True, True]
    assert [window.language for window in windows][-2:] == [None, "de"]
    assert windows[-1].task().traced


def test_a_limit_cuts_and_a_file_that_cannot_be_read_is_noted(sound, tmp_path):
    clips = [Clip(tmp_path / "none.wav"), Clip(sound("long.wav", 65.0))]
    windows, notes = read_windows(clips, limit=2)
    assert [window.last for window in windows] == [False, False]
    assert len(notes) == 1
    assert "none.wav" in notes[0]


def test_a_given_language_goes_before_the_manifest_and_an_unknown_one_is_detected(sound):
    clips = [Clip(sound(), language="de")]
    assert read_windows(clips, language="en", known=("en", "de"))[0][0].language == "en"
    assert read_windows(clips, language="auto", known=("en", "de"))[0][0].language is None
    assert read_windows(clips, known=("en",))[0][0].language is None


def test_without_any_window_there_is_nothing_to_do(tmp_path):
    with pytest.raises(RequestError, match="no window"):
        read_windows([Clip(tmp_path / "none.wav")])
