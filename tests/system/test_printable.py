"""Nothing from outside reaches a terminal as something to obey: names, messages, transcripts."""

import json
import os
import pickle
import sys
import unicodedata

import pytest

from as2d_cli.cli.output.columns import print_table
from as2d_cli.domain.errors import ModelError, one_line
from as2d_cli.system.printable import printable, spoken

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
ODD = f"[bold]a[/bold] \x1b[2J{CLIPBOARD}\x9b31m\r\u202eedoc\u202c \x7f\x00日本語 🎤"
"""Markup of rich, a cleared screen, a filled clipboard, eight-bit colour, a return, turned letters."""


def obeyed(text):
    """Return the characters that do something to a terminal other than appear."""
    return {
        one for one in text if (unicodedata.category(one) == "Cc" and one != "\n") or one in "\u202d\u202e"
    }


def test_names_are_made_fit_for_one_line():
    assert printable("ünï 日本語 🎤") == "ünï 日本語 🎤"
    assert printable("a\nb\x1b[31m\udcff") == "a?b?[31m?"


def test_a_message_of_several_lines_becomes_one():
    assert one_line("a\nb \x1b[31m") == "a b ?[31m"


def test_errors_are_one_printable_line_whatever_they_quote_also_from_another_process():
    error = pickle.loads(pickle.dumps(ModelError(f"tensor {ODD}\nis bad", f"do\n{ODD}")))
    for text in (error.message, error.hint, str(error)):
        assert text.isprintable()
        assert "[bold]a[/bold]" in text


def test_what_is_said_keeps_its_letters_and_loses_what_a_terminal_obeys():
    assert obeyed(spoken(ODD)) == set()
    assert spoken(ODD) == "[bold]a[/bold] [2J]52;c;cm0gLXJmIH4=31medoc\u202c 日本語 🎤"
    speech = "Ünï\tcode\nשלום\u200f، می\u200cخواهم 👩\u200d🚀"  # noqa: RUF001
    assert spoken(speech) == speech


@pytest.fixture
def said(scripted):
    """Have the model say it, word by word and byte by byte."""
    text = ODD.replace("\x7f", "")  # which TOML cannot hold
    scripted({"text": text, "tokenizer": "bytes", "max_tokens": 200}, {"text": text, "tokenizer": "bytes"})


@pytest.mark.parametrize("options", [(), ("--json",), ("-f", "all")])
def test_a_transcript_is_never_obeyed_by_a_terminal(as2d, said, sound, tmp_path, options):
    if options[:1] == ("-f",):
        options = ("-f", "all", "--word-timestamps")
    ended = as2d("transcribe", sound("a.wav", 2), *options)
    assert ended.code == 0
    written = [path.read_text(encoding="utf-8") for path in tmp_path.glob("a.*") if path.suffix != ".wav"]
    for text in (ended.out, ended.err, *written):
        assert obeyed(text.replace("\t", "")) == set()
    assert "[bold]a[/bold] [2J]52;c;cm0gLXJmIH4=31m edoc" in "".join((ended.out, *written))


def test_a_file_name_is_never_obeyed_by_a_terminal(as2d, scripted, sound, tmp_path):
    name = "[bold]\x1b[2J\u202e\x9b1m\n.wav"
    (tmp_path / name).write_bytes(b"no sound at all")
    sound("b\x1b[2J\u202e\x9b1m\n.wav", 2)
    ended = as2d("transcribe", ".", "--json", "-v")
    assert ended.code == 1
    assert obeyed(ended.err) == obeyed(ended.out) == set()
    assert "[bold]?[2J??1m?.wav" in ended.err
    named = {record["file"] for record in ended.records() if "file" in record}
    assert name in named, "in JSON it is escaped, not changed"


def test_tables_hold_nothing_that_a_terminal_obeys(capsys):
    print_table([("NAME", "ROLE"), (ODD, "any")])
    heading, row, end = capsys.readouterr().out.split("\n")
    assert obeyed(row) == set()
    assert end == ""
    assert heading.index("ROLE") == row.index("any")


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_on_a_terminal_neither_names_nor_stages_are_obeyed(monkeypatch):
    from as2d_cli.cli.output.fetch_progress import shown_progress

    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with shown_progress() as progress:
            progress(f"downloading {ODD}", 0, 10)
            drawn = b""
            while b"[bold]a[/bold]" not in drawn:  # forever, if it never comes: the test is ended then
                drawn += os.read(leader, 65536)
    os.close(leader)
    drawn = drawn.decode(errors="replace")  # it may end within a character
    assert "\x1b[2J" not in drawn
    assert "\x1b]52" not in drawn


def test_json_says_the_same_with_and_without_escapes():
    from as2d_cli.transcripts.formats import to_json

    assert json.loads(to_json({ODD: [ODD, "é"]})) == {ODD: [ODD, "é"]}
    assert "é" in to_json("é")
