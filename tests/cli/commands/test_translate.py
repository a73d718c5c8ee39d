"""`as2d translate`: English text of any speech, never mistaken for a transcript."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def monoglot(scripted, tmp_path):
    """Make the scripted drafter one that cannot translate, and says so before it is loaded."""
    registry = tmp_path / "models.toml"
    registry.write_text(registry.read_text() + '\ntasks = ["transcribe"]\n')


def test_a_translation_lies_beside_the_transcript_and_neither_is_taken_for_the_other(
    as2d, scripted, sound, tmp_path
):
    source = sound("a.wav")
    for command in ("transcribe", "translate"):
        assert "1 of 1 file done" in as2d(command, source, "-f", "txt,json").err
    assert {path.name for path in tmp_path.glob("a.*")} == {
        "a.wav",
        *("a.txt", "a.json"),
        *("a.en.txt", "a.en.json"),
    }
    tasks = {name: json.loads((tmp_path / name).read_text())["task"] for name in ("a.json", "a.en.json")}
    assert tasks == {"a.json": "transcribe", "a.en.json": "translate"}
    for command in ("transcribe", "translate"):
        assert "0 of 1 file done, 1 skipped" in as2d(command, source, "-f", "txt,json").err


def test_a_file_that_is_called_like_a_translation_is_not_replaced(as2d, scripted, sound, tmp_path):
    sound("a.wav")
    (tmp_path / "a.en.txt").write_text("made by a person")
    assert "kept a.en.txt" in as2d("translate", "a.wav", "-f", "txt").err
    assert (tmp_path / "a.en.txt").read_text() == "made by a person"


def test_the_transcript_of_another_input_keeps_its_name(as2d, scripted, sound, tmp_path):
    as2d("transcribe", sound("a.en.wav"), "-f", "txt")
    before = (tmp_path / "a.en.txt").read_text()
    assert as2d("translate", sound("a.wav"), "-f", "txt").code == 0
    assert (tmp_path / "a.en.txt").read_text() == before
    assert (tmp_path / "a.wav.en.txt").exists()


def test_drafts_of_a_translation_are_used_and_change_nothing(as2d, scripted, sound):
    ended = as2d("translate", sound("a.wav", 40), "--compare", "--language", "de", "--json")
    record, last = ended.records()
    assert (record["task"], record["language"]) == ("translate", "de")
    assert last["report"]["comparison"]["identical"] == last["report"]["comparison"]["windows"] >= 2
    assert last["report"]["stats"]["accepted"] > 0


def test_a_drafter_that_cannot_translate_stays_out_and_the_report_says_so(as2d, monoglot, sound):
    ended = as2d("translate", sound("a.wav"), "--language", "de", "--json")
    assert ended.code == 0
    assert "drafter none (hearer cannot translate)" in ended.err
    report = ended.records()[-1]["report"]
    assert (report["drafter"], report["drafter_refused"]) == (None, "hearer cannot translate")
    assert report["stats"]["drafted"] == 0
    assert as2d("transcribe", sound("a.wav"), "--json").records()[-1]["report"]["drafter"] == "hearer"


def test_english_is_written_down_with_whatever_drafter(as2d, monoglot, sound):
    written = as2d("transcribe", sound("a.wav"), "--language", "en")
    translated = as2d("translate", sound("a.wav"), "--language", "en")
    assert translated.out == written.out
    assert "drafter hearer: " in translated.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "auto"], "--to cannot be 'auto'"),
        (["--to", "englsh"], "there is no language 'englsh'"),
        (["--drafter", "hearer"], "model 'hearer' cannot translate"),
        (["--model", "hearer"], "model 'hearer' cannot translate"),
        (["--compare"], "--compare does nothing without a drafter, and 'hearer' cannot translate"),
    ],
)
def test_what_cannot_be_translated_is_refused_in_one_line(refused, monoglot, sound, arguments, said):
    ended = refused("translate", sound("a.wav"), *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0].startswith(f"as2d: error: {said}")
    assert len(ended.err.splitlines()) == 2


def test_a_model_that_writes_english_only_says_so(refused, scripted, sound):
    ended = refused("translate", sound("a.wav"), "--to", "german")
    assert (ended.code, ended.out) == (2, "")
    assert "as2d: error: model 'speaker' does not translate to german" in ended.err
    assert "hint: it translates to: english" in ended.err


def test_english_may_be_called_by_its_name(as2d, scripted, sound, tmp_path):
    assert as2d("translate", sound("a.wav"), "--to", "English", "-f", "txt", AS2D_TO="de").code == 0
    assert (tmp_path / "a.en.txt").exists()
