"""Names of outputs: decided beforehand, never shared, never an input."""

import os
from pathlib import Path

import pytest

from as2d_cli.batch.inputs import Input
from as2d_cli.batch.outputs import Outputs, output_folder
from as2d_cli.batch.outputs import plan_outputs as plan_inputs
from as2d_cli.batch.resume import State, content_of, stamp_of
from as2d_cli.domain.errors import RequestError
from as2d_cli.domain.types import Transcript
from as2d_cli.system.addresses import address

SPOKEN = Transcript("Well.", (), "en", 1.0, "speaker", None)


def plan(paths, formats, folder):
    return plan_inputs([Input(path) for path in paths], formats, folder)


def names(planned, root):
    return [[str(path.relative_to(root)) for _, path in outputs.files] for outputs in planned]


def test_outputs_lie_beside_the_input_under_its_stem(tmp_path):
    planned = plan([tmp_path / "talk.of.may.mp3"], ["txt", "srt"], None)
    assert names(planned, tmp_path) == [["talk.of.may.txt", "talk.of.may.srt"]]


def test_an_infix_goes_before_the_format_also_where_names_are_taken(tmp_path):
    sources = [Input(tmp_path / "talk.mp3"), Input(tmp_path / "talk.wav")]
    planned = plan_inputs(sources, ["txt", "srt"], tmp_path, ".en")
    assert names(planned, tmp_path) == [
        ["talk.en.txt", "talk.en.srt"],
        ["talk.wav.en.txt", "talk.wav.en.srt"],
    ]
    assert [name for name, _ in planned[0].files] == ["txt", "srt"]


def test_a_chosen_folder_is_made_and_takes_all_outputs(tmp_path):
    planned = plan([tmp_path / "a.wav"], ["vtt"], tmp_path / "out" / "deep")
    assert names(planned, tmp_path) == [["out/deep/a.vtt"]]
    assert (tmp_path / "out" / "deep").is_dir()


@pytest.mark.parametrize("folder", ["s3:/out", "."])
def test_a_folder_here_that_ends_in_a_colon_takes_outputs(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    (planned,) = plan_inputs([Input(tmp_path / "a.wav", Path("s3:"))], ["txt"], output_folder(folder))
    ((_, path),) = planned.files
    assert path.absolute() == tmp_path / folder / "s3:" / "a.txt"
    assert address(path) is None


def test_a_name_that_is_too_long_is_told_before_anything_is_decoded(tmp_path):
    fits, long = tmp_path / f"{'x' * 250}.wav", tmp_path / f"{'y' * 246}ü.wav"
    assert [one.error for one in plan([fits, long], ["json"], None)] == [None, None]
    first, second = plan_inputs([Input(fits), Input(long)], ["txt", "json"], tmp_path, ".en")
    assert first.error.message.endswith("x.en.txt: the name is too long")
    assert second.error.message.endswith("ü.en.json: the name is too long")


def test_without_formats_nothing_is_planned_and_no_folder_is_touched(tmp_path):
    assert [outputs.files for outputs in plan([tmp_path / "no" / "a.wav"], [], None)] == [()]


def test_of_inputs_with_one_stem_the_later_keep_their_extension(tmp_path):
    for folder in ("x", "y", "z"):
        (tmp_path / folder).mkdir()
    sources = [tmp_path / name for name in ("x/a.wav", "x/a.flac", "y/a.flac", "z/a.flac", "z/b.wav")]
    planned = plan(sources, ["txt"], tmp_path / "out")
    assert names(planned, tmp_path / "out") == [
        ["a.txt"],
        ["a.flac.txt"],
        ["a.flac.2.txt"],
        ["a.flac.3.txt"],
        ["b.txt"],
    ]
    assert names(plan(sources, ["txt"], tmp_path / "out"), tmp_path) == names(planned, tmp_path)


def test_names_that_differ_only_in_case_are_one_on_some_disks_and_so_kept_apart(tmp_path):
    assert names(plan([tmp_path / "A.wav", tmp_path / "a.wav"], ["txt"], None), tmp_path) == [
        ["A.txt"],
        ["a.wav.txt"],
    ]


def test_the_same_file_given_twice_is_planned_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [tmp_path / "a.wav", tmp_path / "b.wav", tmp_path / "x" / ".." / "a.wav"]
    assert [outputs.source for outputs in plan([*given, Path("a.wav")], [], None)] == given[:2]


def test_an_output_never_takes_the_place_of_an_input(tmp_path):
    sources = [
        tmp_path / "a.wav",
        tmp_path / "a.txt",
    ]  # what a file is called does not say that it is no audio
    assert names(plan(sources, ["txt"], None), tmp_path) == [["a.wav.txt"], ["a.txt.txt"]]


def test_an_output_never_takes_the_place_of_an_input_through_a_link(tmp_path):
    (tmp_path / "sound").write_bytes(b"sound")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").symlink_to(tmp_path / "sound")
    planned = plan([tmp_path / "sound", tmp_path / "a.wav"], ["txt"], tmp_path / "out")
    assert names(planned, tmp_path) == [["out/sound.txt"], ["out/a.wav.txt"]]


def test_a_chosen_folder_that_cannot_be_written_is_refused_beforehand(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="file/out: cannot be made"):
        plan([tmp_path / "a.wav"], ["txt"], tmp_path / "file" / "out")
    with pytest.raises(RequestError, match="file: cannot be made"):
        plan([tmp_path / "a.wav"], ["txt"], tmp_path / "file")
    with pytest.raises(RequestError, match=r"out\?: cannot be made"):
        plan([tmp_path / "a.wav"], ["txt"], tmp_path / "out\0")


@pytest.mark.skipif(os.name != "posix" or not Path("/proc/self").is_dir(), reason="needs Linux")
def test_beside_an_input_only_the_inputs_of_an_unwritable_folder_are_refused(tmp_path):
    unwritable = Path("/proc/self/status")  # not even root may write there
    bad, good = plan([unwritable, tmp_path / "a.wav"], ["txt"], None)
    assert "cannot be written to" in bad.error.message
    assert good.error is None


def test_only_what_is_due_is_written_and_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    source = Input(tmp_path / "a.wav")
    source.path.write_text("sound")
    outputs = Outputs(source, (("txt", tmp_path / "a.txt"), ("lrc", tmp_path / "a.lrc")))
    (tmp_path / "a.txt").write_text("precious")
    recipes = {"txt": "1", "lrc": "1"}
    assert outputs.states(recipes) == {"txt": State.FOREIGN, "lrc": State.MISSING}
    content = content_of(source, stamp_of(source))
    assert outputs.write(SPOKEN, {"lrc"}, recipes, content) == (tmp_path / "a.lrc",)
    assert (tmp_path / "a.txt").read_text() == "precious"
    assert outputs.states(recipes) == {"txt": State.FOREIGN, "lrc": State.COMPLETE}
    outputs.write(SPOKEN, {"txt", "lrc"}, recipes, content)
    assert (tmp_path / "a.txt").read_text() == "Well.\n"
    assert outputs.states(recipes) == {"txt": State.COMPLETE, "lrc": State.COMPLETE}


def test_what_was_made_of_an_input_is_none_itself_so_that_all_of_a_folder_can_be_given_again(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "a.wav").write_text("sound")
    (tmp_path / "notes.txt").write_text("mine")
    (first,) = plan([tmp_path / "a.wav"], ["srt"], None)
    first.write(SPOKEN, ["srt"], {"srt": "1"}, content_of(first.input, stamp_of(first.input)))
    again = plan(sorted(tmp_path.glob("*.*")), ["srt"], None)
    assert names(again, tmp_path) == [["a.srt"], ["notes.srt"]]
    assert names(plan([tmp_path / "a.srt"], ["srt"], None), tmp_path) == [["a.srt.srt"]], "asked for by name"
