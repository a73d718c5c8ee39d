"""What is remembered of outputs, and what an output is found to be later."""

import json
import os
import subprocess
import sys

import pytest

from as2d_cli.batch.inputs import Input
from as2d_cli.batch.resume import (
    Record,
    State,
    content_of,
    digest_of,
    owner,
    recipe_of,
    record_of,
    remember,
    source_key,
    stamp_of,
    state_of,
    sweep,
)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """An input, and an output recorded to be made of it by the recipe "r"."""
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    source, output = Input(tmp_path / "a.wav"), tmp_path / "a.txt"
    source.path.write_bytes(b"sound")
    output.write_text("text")
    content = content_of(source, stamp_of(source))
    remember(Record(str(output), source_key(source), content, "r", digest_of(output)))
    return source, output


def test_an_output_is_complete_if_recipe_input_and_output_are_as_recorded(made):
    source, output = made
    assert state_of(output, source, "r") is State.COMPLETE


def test_touching_an_input_changes_nothing_and_changing_it_makes_outputs_stale(made):
    source, output = made
    os.utime(source.path, (1, 1))
    assert state_of(output, source, "r") is State.COMPLETE
    source.path.write_bytes(b"SOUND")
    assert state_of(output, source, "r") is State.STALE
    source.path.write_bytes(b"longer sound")
    assert state_of(output, source, "r") is State.STALE


def test_another_recipe_makes_an_output_stale(made):
    source, output = made
    assert state_of(output, source, "another") is State.STALE


def test_an_output_that_was_edited_or_cut_short_is_not_ours_any_more(made):
    source, output = made
    output.write_text("text, corrected by hand")
    assert state_of(output, source, "r") is State.CHANGED
    output.write_text("")
    assert state_of(output, source, "another") is State.CHANGED


def test_a_pipe_in_the_place_of_an_output_is_not_waited_for(made):
    source, output = made
    output.unlink()
    os.mkfifo(output)
    assert state_of(output, source, "r") is State.CHANGED


def test_without_a_record_an_output_is_somebody_elses(made, monkeypatch, tmp_path):
    source, output = made
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "empty"))
    assert state_of(output, source, "r") is State.FOREIGN
    output.unlink()
    assert state_of(output, source, "r") is State.MISSING


def test_an_output_made_from_another_input_is_never_taken_for_this_ones(made, tmp_path):
    _, output = made
    other = Input(tmp_path / "a.flac")
    other.path.write_bytes(b"sound")
    assert state_of(output, other, "r") is State.FOREIGN
    assert owner(output) == str(tmp_path / "a.wav")
    output.unlink()
    assert owner(output) is None


def test_killed_between_record_and_output_the_old_output_is_still_ours(made):
    source, output = made
    before = record_of(output)
    remember(Record(str(output), before.source, before.content, "new", "digest of new", before.sha256))
    assert state_of(output, source, "new") is State.STALE


@pytest.mark.parametrize("damage", ["", "{}", "[]", "[" * 100_000, '{"output": 1}', "\0", '{"content": {}}'])
def test_a_damaged_record_is_no_record(made, tmp_path, damage):
    source, output = made
    (file,) = (tmp_path / "cache" / "done").glob("*/*.json")
    file.write_text(damage)
    assert record_of(output) is None
    assert state_of(output, source, "r") is State.FOREIGN


def test_what_was_made_of_an_input_that_changed_while_it_was_read_is_ours_and_to_be_made_anew(made):
    source, output = made
    stamp = stamp_of(source)
    source.path.write_bytes(b"SOUND")
    os.utime(source.path, (1, 1))
    remember(Record(str(output), source_key(source), content_of(source, stamp), "r", digest_of(output)))
    assert state_of(output, source, "r") is State.STALE
    source.path.unlink()
    assert content_of(source, stamp).sha256 == ""
    assert stamp_of(source) is None
    assert content_of(source, stamp_of(source)) is None


def test_the_content_of_a_stream_is_known_and_the_stream_begins_anew(made, tmp_path):
    with (tmp_path / "a.wav").open("rb") as stream:
        source = Input(tmp_path / "stdin", stream=stream)
        assert content_of(source, stamp_of(source)).sha256 == digest_of(tmp_path / "a.wav")
        assert stream.read() == b"sound"


def test_recipes_differ_in_any_part_and_not_in_order():
    assert recipe_of({"a": 1, "b": None}) == recipe_of({"b": None, "a": 1})
    assert len({recipe_of({"a": value}) for value in (1, 2, None, "1", True)}) == 5


def test_what_a_killed_run_left_half_written_is_removed_and_nothing_else(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f".as2d-{gone.pid}-0123abcd.part"
    running = tmp_path / f".as2d-{os.getpid()}-0123abcd.part"
    others = [tmp_path / ".as2d-notes.part", tmp_path / ".as2d-1x-0123abcd.part"]
    for path in (left, running, *others):
        path.write_text("half")
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([running, *others])
    sweep(tmp_path / "no such folder")


@pytest.mark.parametrize("key", ["recipe", "source", "sha256"])
def test_a_record_with_a_changed_byte_is_no_record(made, tmp_path, key):
    _, output = made
    (file,) = (tmp_path / "cache" / "done").glob("*/*.json")
    fields = json.loads(file.read_text())
    file.write_text(json.dumps(fields | {key: "x" + fields[key][1:]}))
    assert record_of(output) is None
