"""`as2d bench` as a shell sees it, on scripted models."""

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"
MODES = "sd-2,specasr-asp,async-coupled,as2d-7,as2d-auto,as2d-alone"
LABELS = {
    "target-only",
    "sd-2 hearer",
    "specasr-asp hearer",
    "async-coupled hearer",
    "as2d-7 hearer",
    "as2d-23-alone hearer",
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Run everything once on two clips; return the folder of what is left, and what was said."""
    folder = tmp_path_factory.mktemp("bench")
    clips = folder / "clips"
    clips.mkdir()
    entries = []
    for name in ("jfk.flac", "LJ001-0002.flac"):
        (clips / name).write_bytes((DATA / name).read_bytes())
        entries.append(json.dumps({"file": name, "text": "what nobody says", "lang": "en"}))
    (clips / "manifest.jsonl").write_text("\n".join(entries))
    (folder / "models.toml").write_text(
        """
schema = 1
default_pair = "pair"
pairs.pair = { target = "speaker", drafter = "hearer" }
[models.speaker]
plugin = "scripted"
role = "any"
source = { kind = "none" }
options = { seed = 1, words = 30, encode_ms = 50.0, step_ms = 3.0 }
[models.hearer]
plugin = "scripted"
role = "any"
source = { kind = "none" }
options = { seed = 1, words = 30, error_rate = 0.1, delay_ms = 0.5 }
"""
    )
    environment = os.environ | {
        "AS2D_MODELS": str(folder / "models.toml"),
        "AS2D_CACHE_DIR": str(folder / "cache"),
        "AS2D_CONFIG": "",
    }
    command = [Path(sys.executable).with_name("as2d"), "bench", "clips", "--modes", MODES, "--repeats", "2"]
    ended = subprocess.run(
        [*command, "-o", "r.jsonl", "--html", "p.html", "--trace", "t.json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert ended.returncode == 0, ended.stderr
    return folder, ended.stdout


def records(folder, kind):
    lines = (folder / "r.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [record for record in map(json.loads, lines) if record["type"] == kind]


def test_all_modes_stand_side_by_side_and_give_the_same_tokens(kept):
    _, out = kept
    for label in LABELS:
        assert out.count(f"\n{label} ") >= 4
    assert "all modes gave the same tokens in every window" in out
    assert "as2d-auto chose" in out
    assert "its token tree is left out" in out
    assert "word error rate" in out


def test_there_is_one_row_per_mode_window_and_repeat_with_its_provenance(kept):
    folder, _ = kept
    rows = records(folder, "window")
    places = [(row["mode"], row["window"], row["repeat"]) for row in rows]
    assert len(set(places)) == len(places) == (len(LABELS) + 1) * 2 * 2
    assert {row["mode"] for row in rows} >= LABELS
    for row in rows:
        origin = row["provenance"]
        assert origin["target"]["files"]
        assert origin["drafters"][0]["threads"] == 1
        assert {"as2d", "commit", "plugins", "device", "os", "python", "runtimes", "utc", "budget"} <= set(
            origin
        )


def test_the_replay_judges_every_choice_against_the_oracle(kept):
    folder, _ = kept
    found = {record["choice"]: record for record in records(folder, "oracle")}
    assert {"target-only", "as2d-4 hearer", "as2d-23 hearer", "oracle, per window"} <= set(found)
    assert found["oracle, per window"]["speedup"] >= found["as2d-23 hearer"]["speedup"] > 1
    for compared in ("target-only", "as2d-23 hearer"):
        assert found[compared]["native_ms"] > 0
    assert found["as2d-4 hearer"]["native_ms"] is None


def test_page_and_trace_are_written_and_can_be_read(kept):
    folder, _ = kept
    parser = HTMLParser()
    parser.feed((folder / "p.html").read_text(encoding="utf-8"))
    parser.close()
    page = (folder / "p.html").read_text(encoding="utf-8")
    assert all(f'<section id="{name}">' in page for name in ("speedups", "lanes", "staircase"))
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    spans = {(event["pid"], event["name"].split()[0]) for event in events if event["ph"] == "X"}
    assert spans == {(1, "window"), (1, "encode"), (1, "step"), (2, "draft")}


def test_kept_measurements_are_shown_again_without_any_model(kept, as2d, monkeypatch):
    folder, out = kept
    monkeypatch.setenv("AS2D_MODELS", str(folder / "none.toml"))
    shown = as2d("bench", "--from", folder / "r.jsonl", "--html", folder / "again.html")
    assert (shown.code, shown.out) == (0, out)
    assert (folder / "again.html").read_bytes() == (folder / "p.html").read_bytes()


@pytest.mark.parametrize("where", ["provenance", "row"])
def test_a_file_of_another_version_is_one_clear_error(kept, as2d, tmp_path, where):
    folder, _ = kept
    lines = [json.loads(line) for line in (folder / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if where == "provenance":
            del line["provenance"]["budget"]
        elif line["type"] == "window":
            line["wall_s"] = None
    (tmp_path / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    shown = as2d("bench", "--from", "old.jsonl")
    assert shown.code == 2
    assert "old.jsonl: is no result of this version's bench" in shown.err
    assert "Traceback" not in shown.err


def test_a_mode_that_changes_the_text_is_caught(as2d, scripted, sound, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(DATA / "liar_plugin"))
    scripted({}, {"text": "all of it is in the box", "error_rate": 0.0}, plugin="liar")
    run = as2d("bench", sound(), "--modes", "as2d-7", "--repeats", 1, "--no-oracle", "-o", "r.jsonl")
    assert run.code == 1
    assert "DIFFERENT TEXT: as2d-7 hearer" in run.out
    assert "as2d: as2d-7 hearer gives another text than the target alone" in run.err


def test_a_drafter_that_always_dies_costs_only_speed(as2d, scripted, sound):
    scripted({"encode_ms": 1.0}, {"exit_at": 2})
    run = as2d("bench", sound(), "--modes", "as2d-7,sd-2", "--repeats", 1, "--no-oracle")
    assert run.code == 0
    assert "note: sd-2 hearer failed and is left out" in run.out
    assert "all modes gave the same tokens" in run.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to measure on"),
        (["a.wav", "--modes", "sd-3"], "no mode 'sd-3'"),
        (["a.wav", "--pair", "none"], "no pair called 'none'"),
        (["a.wav", "--drafter", "none"], "no model called 'none'"),
        (["a.wav", "--from", "r.jsonl"], "--from measures nothing"),
        (["--from", "r.jsonl"], "r.jsonl: cannot be read"),
        (["a.wav", "--language", "klingon"], "klingon"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_loaded(refused, scripted, arguments, said):
    run = refused("bench", *arguments)
    assert run.code in {2, 3}
    assert said in run.err


@pytest.mark.parametrize("option", ["-o", "--html", "--trace"])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(
    refused, scripted, sound, tmp_path, option
):
    run = refused("bench", sound(), option, tmp_path / "no" / "file")
    assert (run.code, run.out) == (1, "")
    assert "file: cannot be written" in run.err


def test_a_pipe_that_nobody_reads_takes_no_rows(refused, scripted, sound, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    run = refused("bench", sound(), "-o", tmp_path / "pipe")
    assert (run.code, run.out) == (1, "")
    assert "pipe: cannot be written" in run.err


@pytest.mark.parametrize("option", ["--html", "--trace"])
def test_a_pipe_or_a_device_is_not_replaced_by_a_page(refused, scripted, sound, tmp_path, option):
    os.mkfifo(tmp_path / "pipe")
    run = refused("bench", sound(), option, tmp_path / "pipe")
    assert (run.code, run.out) == (1, "")
    assert "pipe: cannot be written: it is a pipe or a device" in run.err
