"""`as2d ask` as a shell sees it, with scripted models that listen and read."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

AS2D = Path(sys.executable).with_name("as2d")
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
    stopped = ask("bad.wav", sound(), "-q", "What?", "--json", "--fail-fast")
    assert len(records(stopped)) == 2


def test_a_question_that_fails_does_not_end_the_run(ask, reading, sound):
    reading({"fail_at": 13}, name="shaky")  # the rows of one answer and the first of the next
    ended = ask(sound(), "-q", "What?", "--json", reader="shaky", drafter="none")
    assert ended.code in {0, 1}
    reading({"fail_at": 3}, name="broken")
    ended = ask(sound(), "-q", "What?", "-q", "Who?", "--json", reader="broken", drafter="none")
    assert ended.code == 1
    assert [record.get("question") for record in records(ended)] == ["What?", "Who?", None]
    assert all("fails after" in record["error"] for record in records(ended)[:2])


def test_silence_is_answered_without_a_model(ask, tmp_path):
    import numpy as np
    import soundfile

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


def test_questions_come_from_a_list_or_from_standard_input(reading, sound, tmp_path):
    (tmp_path / "list.txt").write_text("What?\n\nWho?\n", encoding="utf-8")
    command = [AS2D, "ask", sound(), "--reader", "reader", "--reader-drafter", "none", "--json"]
    for more, piped in (
        (["--questions", "list.txt"], None),
        ([], "What?\nWho?\n"),
        (["-q", "What?"], "Who?"),
    ):
        ended = subprocess.run(
            [*command, *more], input=piped, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        asked = [json.loads(line).get("question") for line in ended.stdout.splitlines()]
        assert asked == (["What?", None] if piped == "Who?" else ["What?", "Who?", None])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "there is no question"),
        (["-q", "  "], "there is no question"),
        (["-q", "What?", "--reader", "speaker"], "'speaker' does not answer from a text"),
        (["-q", "What?", "--reader", "nobody"], "no model called 'nobody'"),
        (
            ["-q", "What?", "--reader-drafter", "none", "--compare"],
            "--compare does nothing without a drafter",
        ),
        (["-q", "word " * 300], "tokens is too long"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_heard(ask, sound, arguments, why):
    ended = ask(sound(), *arguments)
    assert ended.code in {2, 3}
    assert why in ended.err
    assert ended.out == ""
