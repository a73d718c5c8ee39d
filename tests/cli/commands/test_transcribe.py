"""`as2d transcribe` as a shell sees it, with scripted models: streams, options, exit codes, signals."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from as2d_cli.transcripts.formats import FORMATS

AS2D = Path(sys.executable).with_name("as2d")
DATA = Path(__file__).parents[2] / "data"


def test_stdout_holds_the_texts_and_nothing_else(as2d, scripted, sound):
    one, two = as2d("transcribe", sound("a.wav")), as2d("transcribe", sound("b.wav"))
    both = as2d("transcribe", sound("a.wav"), sound("b.wav"))
    assert len(one.out.split()) == 40
    assert one.out.endswith("\n")
    assert both.out == one.out + "\n" + two.out
    assert both.code == 0


def test_the_report_goes_to_stderr_and_quiet_means_quiet(as2d, scripted, sound):
    ended = as2d("transcribe", sound("a.wav"))
    lines = ended.err.splitlines()
    assert all(line.startswith("as2d: ") for line in lines[-4:])
    assert lines[-4] == "as2d: 1 of 1 file done"
    assert "2.0 s of audio in" in lines[-3]
    assert "drafter hearer" in lines[-2]
    assert lines[-1].startswith("as2d: time: encode ")
    assert "\x1b" not in ended.err
    assert as2d("transcribe", sound("a.wav"), "--quiet").err == ""


def test_without_formats_no_file_is_written(as2d, scripted, sound, tmp_path):
    sound("a.wav")
    before = sorted(tmp_path.iterdir())
    assert as2d("transcribe", "a.wav").code == 0
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_alone_means_plain_text(as2d, scripted, sound, tmp_path):
    ended = as2d("transcribe", sound("a.wav"), "-o", "out")
    assert (tmp_path / "out" / "a.txt").read_text() == ended.out
    assert len(list((tmp_path / "out").iterdir())) == 1


def test_all_formats_can_be_asked_for_and_underscores_are_understood(as2d, scripted, sound, tmp_path):
    assert as2d("transcribe", sound("a.wav"), "--output_format", "all", "--output_dir", "out").code == 0
    assert sorted(path.suffix[1:] for path in (tmp_path / "out").iterdir()) == sorted(FORMATS)
    assert ",".join(FORMATS) in as2d("transcribe", "--help").out


def test_a_bad_file_is_one_line_on_stderr_and_exit_1(as2d, scripted, sound, tmp_path):
    (tmp_path / "bad.wav").write_text("no sound")
    (tmp_path / "empty").mkdir()
    ended = as2d("transcribe", "gone.wav", "bad.wav", sound("a.wav"), "empty", "--quiet")
    assert ended.code == 1
    assert len(ended.out.split()) == 40
    lines = sorted(ended.err.splitlines())
    assert len(lines) == 3
    assert any(line.startswith("as2d: gone.wav: no such file") for line in lines)
    assert any(line.startswith("as2d: bad.wav: ") for line in lines)
    assert any(line.startswith("as2d: empty: there is no audio in this folder") for line in lines)


def test_names_and_brackets_are_never_read_as_markup(as2d, scripted, sound):
    ended = as2d("transcribe", sound("[red]a[bold].wav"), "[red]gone[bold].wav", "-v", "-f", "txt")
    assert "[red]a[bold].wav: wrote " in ended.err
    assert "[red]gone[bold].wav: no such file" in ended.err


def test_json_lines_hold_every_outcome_and_the_report(as2d, scripted, sound, tmp_path):
    sound("a.wav"), sound("done.wav")
    (tmp_path / "done.json").write_text("{}")
    ended = as2d("transcribe", "a.wav", "done.wav", "gone.wav", "--json", "-f", "json")
    records = {record.get("file", "report"): record for record in ended.records()}
    assert list(records)[-1] == "report"
    spoken = records["a.wav"]
    assert {"file", "text", "language", "duration", "segments", "stats"} <= set(spoken)
    assert spoken["duration"] == 2.0
    assert spoken["stats"]["tokens_per_step"] > 1
    assert spoken["outputs"] == ["a.json"]
    assert "words" not in spoken["segments"][0]
    assert records["done.wav"]["skipped"] is True
    assert records["gone.wav"]["error"] == "gone.wav: no such file"
    assert records["report"]["report"]["failed"] == 1
    assert ended.code == 1
    file = json.loads((tmp_path / "a.json").read_text())
    assert file["segments"] == spoken["segments"]


def test_words_are_in_json_only_when_asked_for(as2d, scripted, sound):
    record = as2d("transcribe", sound("a.wav"), "--json", "--word_timestamps").records()[0]
    words = [word["word"] for segment in record["segments"] for word in segment["words"]]
    assert "".join(words).strip() == record["text"]


def test_existing_files_are_kept_with_a_note_and_replaced_on_request(as2d, scripted, sound, tmp_path):
    sound("a.wav")
    (tmp_path / "a.txt").write_text("precious")
    ended = as2d("transcribe", "a.wav", "-f", "txt")
    assert (ended.code, ended.out) == (0, "")
    assert "as2d: a.wav: skipped" in ended.err
    assert (tmp_path / "a.txt").read_text() == "precious"
    ended = as2d("transcribe", "a.wav", "-f", "txt", "--overwrite")
    assert (tmp_path / "a.txt").read_text() == ended.out


def test_comparing_says_identical_and_the_speedup(as2d, scripted, sound):
    ended = as2d("transcribe", sound("a.wav"), sound("long.wav", 70), "--compare")
    assert ended.code == 0
    assert "compare: identical, 4 of 4 windows the same text" in ended.err
    assert "x (" in ended.err.splitlines()[-1]


def test_a_difference_found_by_comparing_is_said_even_when_quiet_and_fails(
    as2d, scripted, sound, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", str(DATA / "liar_plugin"))
    scripted({}, {"text": "all of it is in the box", "error_rate": 0.0}, plugin="liar")
    ended = as2d("transcribe", sound("a.wav"), "--compare", "--quiet")
    assert ended.code == 1
    assert "compare: NOT IDENTICAL, 0 of 1 window the same text" in ended.err
    assert ended.err.splitlines()[-1].endswith(
        "DIFFERENT TEXT with drafts: " + str(sound("a.wav")) + " at 0.0 s"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--compare", "--drafter", "none"], "--compare does nothing without a drafter"),
        (["--draft-tokens", "5", "--drafter", "none"], "--draft-tokens does nothing without a drafter"),
        (["--budget", "5", "--drafter", "none"], "--budget does nothing without a drafter"),
        (["--budget", "0", "--compare"], "--compare does nothing without a drafter"),
        (["--budget", "65"], "--budget cannot be '65'"),
        (["--budget", "5", "--draft-tokens", "5"], "--budget and --draft-tokens contradict"),
        (["--memory-limit", "0MB"], "--memory-limit cannot be '0MB'"),
        (["--memory-limit", "plenty"], "--memory-limit cannot be 'plenty'"),
        (
            ["--memory-limit", "1GB", "--budget", "7"],
            "--memory-limit does nothing where drafts are not chosen",
        ),
        (["--word-timestamps"], "--word-timestamps does nothing without JSON"),
        (["--word-timestamps", "-f", "srt"], "--word-timestamps does nothing without JSON"),
        (["--overwrite"], "--overwrite does nothing without files"),
        (["--quiet", "--verbose"], "contradict"),
        (["--draft-tokens", "0"], "--draft-tokens cannot be '0'"),
        (["--draft-tokens", "many"], "--draft-tokens cannot be 'many'"),
        (["-f", "str"], "there is no output format 'str'"),
        (["-f", ","], "at least one format"),
        (["--language", "germn"], "there is no language 'germn'"),
        (["--language", "welsh"], "model 'speaker' does not know welsh"),
        (["-o", "a.wav"], "a.wav: cannot be made"),
        (["--threads", "0"], "--threads"),
        (["--beam_size=5"], "No such option: --beam-size. Instead: decoding is greedy"),
        (["--task", "translate"], "Instead: as2d translate"),
        (["-osrt"], "Instead: -f srt"),
        (["--threads", "9" * 20], "threads cannot be 9999"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_work(refused, scripted, sound, arguments, said):
    sound("a.wav")
    ended = refused("transcribe", "a.wav", *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert said in ended.err


@pytest.mark.parametrize("option", ["--model", "--target", "--drafter"])
def test_an_unknown_model_is_exit_3_with_a_suggestion(refused, scripted, sound, option):
    ended = refused("transcribe", sound("a.wav"), option, "spaeker")
    assert ended.code == 3
    assert "did you mean 'speaker'?" in ended.err


def test_a_model_that_cannot_be_loaded_is_exit_3(as2d, scripted, sound):
    scripted({"nonsense": 1})
    ended = as2d("transcribe", sound("a.wav"))
    assert ended.code == 3
    assert "as2d: error: model 'speaker': the scripted plugin has no option 'nonsense'" in ended.err


def test_no_option_of_drafting_changes_the_text(as2d, scripted, sound):
    plain = as2d("transcribe", sound("a.wav"), "--drafter", "none").out
    for option in ("--draft-tokens", "--budget"):
        assert as2d("transcribe", sound("a.wav"), option, "7").out == plain


def start(arguments, cwd):
    """Start the command in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [AS2D, "transcribe", *arguments],
        bufsize=0,  # else more than a line is taken when one is read, and `communicate` knows nothing of it
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def test_ctrl_c_keeps_what_is_finished_and_says_so(scripted, sound, tmp_path):
    scripted({"step_ms": 20.0}, {"error_rate": 0.9})
    names = [sound(f"{number}.wav").name for number in range(5)]
    process = start([*names, "-o", "out", "--json"], tmp_path)
    first = process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"as2d: interrupted: " in err
    records = [json.loads(line) for line in (first + out).splitlines()]
    done = [record["file"] for record in records[:-1]]
    assert records[-1]["report"]["interrupted"] is True
    assert records[-1]["report"]["done"] == len(done) < 5
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{Path(name).stem}.txt" for name in done
    ]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_request_to_end_keeps_what_is_finished_and_says_so(scripted, sound, tmp_path, number, code):
    scripted({"step_ms": 20.0}, {"error_rate": 0.9})
    process = start([sound(f"{number}.wav").name for number in range(5)] + ["-o", "out", "--json"], tmp_path)
    first = process.stdout.readline()
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in err
    assert b"as2d: interrupted: " in err
    report = json.loads(out.splitlines()[-1])["report"]
    assert report["interrupted"] is True
    assert 1 <= report["done"] == len(list((tmp_path / "out").iterdir())) < 5
    assert first


def test_a_run_that_is_to_outlive_its_terminal_does(scripted, sound, tmp_path):
    scripted({"step_ms": 20.0}, {"error_rate": 0.9})
    command = ["nohup", AS2D, "transcribe", sound("a.wav").name, sound("b.wav").name, "-f", "txt"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(list(tmp_path.glob("*.txt"))) == 2


def test_messages_that_cannot_be_written_do_not_end_a_run(scripted, sound, tmp_path):
    sound("a.wav")
    script = 'exec "$0" transcribe a.wav missing.wav -f txt 2>/dev/full'
    ended = subprocess.run(["sh", "-c", script, AS2D], cwd=tmp_path, check=False, stdout=subprocess.DEVNULL)
    assert ended.returncode == 1
    assert (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("delay_s", [0.3, 0.7, 1.2])
def test_ctrl_c_while_starting_is_quiet(scripted, sound, tmp_path, delay_s):
    scripted({"step_ms": 500.0})
    process = start([sound("a.wav", 20)], tmp_path)
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == b""
    assert b"Traceback" not in err
    assert process.returncode in {130, -signal.SIGINT}  # the latter before any of our code runs


def is_alive(group):
    """Tell whether any process of the group lives."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_main_process_leaves_no_other_behind(scripted, sound, tmp_path):
    scripted({"step_ms": 20.0}, {"error_rate": 0.9})
    process = start([sound(f"{number}.wav") for number in range(5)], tmp_path)
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)
    end = time.monotonic() + 20
    while is_alive(process.pid):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_reader_that_leaves_ends_the_run_silently(scripted, sound, tmp_path):
    process = start([sound("a.wav"), sound("b.wav"), "--quiet"], tmp_path)
    process.stdout.close()
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 141


def test_closed_standard_streams_do_no_harm(scripted, sound, tmp_path):
    sound("a.wav")
    script = 'exec "$0" transcribe a.wav -f txt <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", script, AS2D], cwd=tmp_path, check=False).returncode == 0
    assert len((tmp_path / "a.txt").read_text().split()) == 40


def on_a_terminal(command, cwd, **environment):
    """Run a command whose stderr (only) is a terminal; return its stdout and what the terminal got."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"} | environment,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(ours)
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait(60) == 0
    return out.decode(), seen.decode()


def test_a_terminal_gets_a_bar_and_stdout_stays_clean(as2d, scripted, sound, tmp_path):
    scripted({"step_ms": 50.0}, {"error_rate": 0.5})
    plain = as2d("transcribe", sound("[a].wav", 20), sound("b.wav", 20))
    command = [AS2D, "transcribe", "[a].wav", "b.wav"]
    out, seen = on_a_terminal(command, tmp_path)
    assert out == plain.out
    assert "[a].wav" in seen
    assert "1/2 files" in seen
    assert "0:20/0:40" in seen
    assert "tokens per step" in seen
    assert seen.endswith("\r\n")
    assert "as2d: 2 of 2 files done" in seen
    scripted()
    _, seen = on_a_terminal([*command, "--no-progress"], tmp_path)
    assert "\x1b" not in seen
    assert "as2d: 2 of 2 files done" in seen
    assert on_a_terminal([*command, "--quiet"], tmp_path)[1] == ""


def test_without_colour_the_bar_has_none(scripted, sound, tmp_path):
    command = [AS2D, "transcribe", sound("a.wav", 20)]
    colour = re.compile("\x1b\\[[0-9;]*(3[0-7]|38;5;[0-9]+)m")
    assert colour.search(on_a_terminal(command, tmp_path)[1])
    _, seen = on_a_terminal(command, tmp_path, NO_COLOR="1")
    assert "1/1 files" in seen
    assert not colour.search(seen)


def test_standard_input_and_output_are_not_for_the_models(scripted, sound, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(DATA / "nosy_plugin"), prepend=os.pathsep)
    scripted_models = tmp_path / "models.toml"
    scripted(plugin="nosy")
    scripted_models.write_text(
        "\n".join(line for line in scripted_models.read_text().splitlines() if not line.startswith("options"))
    )
    sound("a.wav")
    script = 'printf "first\\nsecond\\n" | { "$0" transcribe a.wav --quiet --drafter none; cat; }'
    ended = subprocess.run(["sh", "-c", script, AS2D], cwd=tmp_path, check=True, capture_output=True)
    assert ended.stdout == b"all of it\nfirst\nsecond\n"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("as2d tr", "transcribe"),
        ("as2d transcribe --lang", "--language"),
        ("as2d translate --to engl", "english"),
        ("as2d config s", "show"),
        ("as2d transcribe --model sp", "speaker"),
        ("as2d transcribe --drafter h", "hearer"),
        ("as2d transcribe --drafter n", "none"),
        ("as2d transcribe --language ger", "german"),
        ("as2d transcribe --output-format srt,j", "srt,json"),
    ],
)
def test_shells_can_complete_commands_options_and_values(as2d, scripted, tmp_path, words, wanted):
    (tmp_path / "config.toml").write_text("nonsense = 1")  # no reason to fail while someone types
    ended = as2d(
        _AS2D_COMPLETE="complete_bash",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
        AS2D_CONFIG=str(tmp_path / "config.toml"),
    )
    assert "Traceback" not in ended.err
    assert wanted in ended.out.split()


def test_a_target_that_does_not_hear_whole_windows_is_refused_before_any_is_cut(as2d, scripted, sound):
    scripted({"frames": 1000})
    ended = as2d("transcribe", sound("a.wav"), "--drafter", "none")
    assert ended.code == 3
    assert ended.out == ""
    assert "its features are 80 times 1000, which windows of 30 s do not fit" in ended.err
    assert "Traceback" not in ended.err
