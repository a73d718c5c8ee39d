"""`as2d ask` as a shell sees it, with scripted models that listen and read."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from as2d_cli.ask.types import Answer
from as2d_cli.cli.commands.ask import read_ask_request
from as2d_cli.cli.options.parameters import AskOptions
from as2d_cli.cli.output.answers import TextAnswers
from as2d_cli.domain.errors import As2dError
from as2d_cli.models.registry import load_registry
from as2d_cli.system.addresses import located, shown

SPEECH = Path(__file__).parents[2] / "data" / "jfk.flac"
READER = {"seed": 2, "words": 12, "listens": False, "encode_ms": 60.0, "step_ms": 2.0}


@pytest.fixture
def reading(scripted, tmp_path):
    """Add a scripted pair that reads to the one that listens; returns a way to change its options."""

    def choose(target=None, drafter=None, name="reader"):
        path = tmp_path / "models.toml"
        lines = [path.read_text(encoding="utf-8")]
        pair = {name: READER | (target or {})}
        pair[f"{name}-small"] = {"seed": 2, "words": 12, "listens": False, "error_rate": 0.1} | (
            drafter or {}
        )
        for model, options in pair.items():
            lines += [f"[models.{model}]", 'plugin = "scripted"', 'role = "any"', 'source = {kind = "none"}']
            lines += [f"options.{key} = {json.dumps(value)}" for key, value in options.items()]
        lines += [f"[pairs.{name}]", f'target = "{name}"', f'drafter = "{name}-small"']
        path.write_text("\n".join(lines), encoding="utf-8")

    choose()
    return choose


@pytest.fixture
def ask(as2d, reading):
    def run(*arguments, reader="reader", drafter="reader-small", **environment):
        return as2d("ask", "--reader", reader, "--reader-drafter", drafter, *arguments, **environment)

    return run


def records(ended):
    return [json.loads(line) for line in ended.out.splitlines()]


def test_stdout_holds_the_answer_with_its_times_and_nothing_else(ask, sound):
    ended = ask(sound(), "-q", "What is said?")
    assert ended.code == 0, ended.err
    (line,) = ended.out.splitlines()
    answer, _, times = line.rpartition(" [")
    assert len(answer.split()) == 12
    assert re.fullmatch(r"0:0[01]-0:0[12]\]", times)
    assert "1 of 1 file done" in ended.err
    assert "1 of 1 question done" in ended.err
    assert "drafter reader-small" in ended.err


def test_every_question_is_asked_about_every_file_and_named(ask, sound):
    ended = ask(sound("a.wav"), sound("b.wav"), "-q", "What?", "-q", "Who?", "-q", "What?")
    names = [line for line in ended.out.splitlines() if line.endswith("?")]
    assert [Path(name).name for name in names] == [
        "a.wav: What?",
        "a.wav: Who?",
        "b.wav: What?",
        "b.wav: Who?",
    ]
    assert len(set(ended.out.splitlines()) - {""}) == 8, "the answers differ by file and by question"


def test_a_question_about_a_page_of_the_web_is_no_part_of_its_address(capsys):
    page = located("https://host/a.wav?key=5ec4e7")
    TextAnswers(named=True).answer(Answer(page, "Why? And\nwho?", "So."))
    assert capsys.readouterr().out == f"{shown(page)}: Why? And who?\nSo.\n"


def test_json_is_one_line_per_answer_and_the_report_last(ask, sound):
    answer, report = records(ask(sound(), "-q", "What?", "--json"))
    assert answer["question"] == "What?"
    assert len(answer["answer"].split()) == 12
    assert answer["found"]
    (times,) = answer["times"]
    assert 0.0 <= times["start"] < times["end"] <= 2.0
    assert answer["models"] == {"listener": "speaker", "reader": "reader", "drafter": "reader-small"}
    assert answer["stats"]["accepted"] > 0
    assert report["report"]["answering"]["done"] == 1
    assert report["report"]["listening"]["done"] == 1


def test_listening_takes_as_long_as_it_does_though_answers_are_given_meanwhile(ask, scripted, reading, sound):
    scripted({"encode_ms": 500.0})
    reading({"encode_ms": 700.0})
    files = [sound(f"{name}.wav") for name in "abcd"]
    found = records(ask(*files, "-q", "What?", "--json"))[-1]["report"]["listening"]
    assert found["wall_s"] >= found["stats"]["wall_s"] > 0
    assert sum(found["shares"].values()) == pytest.approx(1, abs=1e-3)


def test_the_drafter_changes_no_answer_and_compare_confirms_it(ask, sound):
    alone, drafted = (
        records(ask(sound(), "-q", "What?", "--json", drafter=name))[0] for name in ("none", "reader-small")
    )
    assert drafted["answer"] == alone["answer"]
    assert drafted["stats"]["tokens_per_step"] > 1
    assert alone["stats"]["tokens_per_step"] == 1
    compared = ask(sound(), "-q", "What?", "-q", "Who?", "--compare")
    assert compared.code == 0
    assert "compare: identical, 2 of 2 windows" in compared.err


def test_a_bad_file_does_not_end_the_run(ask, sound, tmp_path):
    (tmp_path / "bad.wav").write_bytes(b"no sound")
    ended = ask("bad.wav", sound(), "-q", "What?", "--json")
    failed, answer, _ = records(ended)
    assert ended.code == 1
    assert failed["question"] is None
    assert failed["error"]
    assert answer["answer"]
    assert "bad.wav" in ended.err


def test_a_question_that_fails_does_not_end_the_run(ask, reading, sound):
    reading({"fail_at": 3}, name="broken")
    ended = ask(sound(), "-q", "What?", "-q", "Who?", "--json", reader="broken", drafter="none")
    assert ended.code == 1
    assert [record.get("question") for record in records(ended)] == ["What?", "Who?", None]
    assert all("fails after" in record["error"] for record in records(ended)[:2])


def test_silence_is_answered_without_a_model(ask, tmp_path):
    soundfile.write(tmp_path / "silence.wav", np.zeros(48000), 16000)
    answer, _ = records(ask("silence.wav", "-q", "What?", "--json"))
    assert answer["answer"] == "Not in the recording."
    assert not answer["found"]
    assert answer["times"] == []


def test_a_long_transcript_is_cut_for_the_question(ask, reading, sound):
    reading({"max_passage_tokens": 30}, name="narrow")
    answer, _ = records(ask(sound(seconds=90.0), "-q", "What?", "--json", reader="narrow", drafter="none"))
    assert not answer["whole_transcript"]
    assert answer["answer"]


def test_questions_come_from_a_list_or_from_standard_input(reading, sound, tmp_path, monkeypatch):
    (tmp_path / "list.txt").write_text("What?\n\n Who? \nWhat?\n", encoding="utf-8")

    def asked(piped="", **options):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
        return read_ask_request(AskOptions(files=[str(sound())], reader="reader", **options))[0].questions

    assert asked(questions=str(tmp_path / "list.txt")) == ("What?", "Who?")
    assert asked("What?\nWho?\n") == ("What?", "Who?")
    assert asked("What?\nWho?\n", questions="-", question=["Why?"]) == ("Why?", "What?", "Who?")
    assert asked("Who?", question=["What?"]) == ("What?",)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "there is no question"),
        ({"questions": "gone"}, "gone: the list cannot be read: No such file"),
        ({"question": ["  "]}, "there is no question"),
        ({"question": ["What?"], "reader": "nobody"}, "no model called 'nobody'"),
        ({"question": ["What?"], "reader_drafter": "none", "compare": True}, "--compare does nothing"),
        ({"questions": "-", "files": ["-"]}, "both a recording and questions"),
        ({"question": ["What?"], "reader": "whisper-tiny.en"}, "'whisper-tiny.en' cannot ask"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_loaded(reading, sound, monkeypatch, options, why):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(As2dError, match=why):
        read_ask_request(AskOptions(**({"files": [str(sound())], "reader": "reader"} | options)))


def test_the_default_reader_is_one_that_can_be_asked_and_has_a_drafter(reading, sound):
    request, _ = read_ask_request(AskOptions(files=[str(sound())], question=["What?"]))
    assert request.reader.name == load_registry().default_reader
    assert request.reader.tasks == ("ask",)
    assert request.drafter is not None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-q", "What?", "--reader", "speaker"], "'speaker' does not answer from a text"),
        (["-q", "word " * 300], "tokens is too long"),
    ],
)
def test_what_is_beyond_the_reader_is_said_before_anything_is_heard(ask, sound, arguments, why):
    ended = ask(sound(), *arguments)
    assert ended.code == 2
    assert why in ended.err
    assert ended.out == ""


def test_a_model_that_listens_can_answer_by_itself(ask, sound, tmp_path):
    (tmp_path / "bad.wav").write_bytes(b"no sound")
    arguments = ["-q", "What?", "-q", "Who?", "--json", "--compare"]
    ended = ask("bad.wav", sound(seconds=40.0), *arguments, reader="none")
    failed, what, who, report = records(ended)
    assert failed["question"] is None
    assert failed["error"]
    assert what["answer"] != who["answer"]
    assert len(what["answer"].split()) == 2 * 40, "one answer for each of two windows"
    assert what["times"][0]["start"] == 0.0
    assert what["times"][1]["end"] == 40.0
    assert what["models"]["reader"] == "speaker"
    assert report["report"]["listening"] is None
    assert report["report"]["answering"]["comparison"]["identical"] == 4
    assert ended.code == 1


def test_a_model_that_reads_cannot_answer_by_ear(ask, sound):
    ended = ask(sound(), "-q", "What?", "-m", "reader", "--reader", "none", "--drafter", "none")
    assert ended.code == 2
    assert "'reader' does not answer questions by ear" in ended.err


def test_real_models_answer_about_a_real_recording_the_same_with_drafts(as2d):
    """The smallest reader, drafting from the transcript itself."""
    ended = as2d(
        *("ask", SPEECH, "-q", "Quote what is said."),
        *("--reader", "smollm2-135m", "--reader-drafter", "lookup", "--draft-tokens", "6"),
        *("--compare", "--json"),
    )
    assert ended.code == 0, ended.err
    assert "The device supports" not in ended.err, "MNN says so when it is loaded"
    quoted, report = records(ended)
    assert quoted["times"]
    assert "ask not what your country can do for you" in quoted["answer"]
    assert quoted["stats"]["tokens_per_step"] > 1.2
    assert report["report"]["answering"]["comparison"]["identical"] == 1
