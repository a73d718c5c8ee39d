"""Inputs and outputs of `as2d transcribe` as a shell sees them.

The A numbers are those of known complaints about other tools: an unreadable file that exits 0 (A1), outputs
that overwrite each other (A2), a video without sound that ends the batch (A5), a pipe of unknown length
(A10), drafts that slow things down unseen (A12).
"""

import struct
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

AS2D = Path(sys.executable).with_name("as2d")


def run(arguments, cwd, stdin=None):
    """Run the command with these bytes on standard input; return exit code, stdout and stderr."""
    ended = subprocess.run(
        [AS2D, "transcribe", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        timeout=120,
        check=False,
    )
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a1_an_undecodable_file_is_named_fails_and_leaves_no_output(as2d, scripted, tmp_path):
    (tmp_path / "x.wav").write_text("hello")
    ended = as2d("transcribe", "x.wav", "-f", "json,txt")
    assert ended.code == 1
    assert "as2d: x.wav: not audio" in ended.err
    assert tree(tmp_path) == ["models.toml", "x.wav"]


def test_a2_inputs_with_one_stem_get_outputs_of_their_own_whatever_is_run_later(
    as2d, scripted, sound, tmp_path
):
    first = as2d("transcribe", sound("x/a.wav"), "-o", "out")
    assert tree(tmp_path / "out") == ["a.txt"]
    sources = [sound("x/a.flac"), sound("y/a.wav"), sound("x/a.wav")]
    assert as2d("transcribe", *sources, "-o", "out").code == 0
    texts = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert sorted(texts) == ["a.flac.txt", "a.txt", "a.wav.txt"]
    assert texts["a.txt"] == first.out  # what was made first keeps its name, though it was given last
    assert len(set(texts.values())) == 3
    assert as2d("transcribe", *sources, "-o", "new").code == 0
    assert {path.read_text() for path in (tmp_path / "new").iterdir()} == set(texts.values())
    again = as2d("transcribe", *reversed(sources), "-o", "out", "--json")
    assert again.records()[-1]["report"]["skipped"] == 3
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == texts


def write_silent_film(path):
    """Write a video without any audio."""
    with av.open(str(path), "w", format="mp4") as film:
        stream = film.add_stream("mpeg4", rate=25)
        stream.width = stream.height = 64
        for _ in range(10):
            frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            film.mux(stream.encode(frame))
        film.mux(stream.encode())


def test_a5_a_video_without_sound_is_one_line_and_the_rest_is_done(as2d, scripted, sound, tmp_path):
    write_silent_film(tmp_path / "film.mp4")
    ended = as2d("transcribe", "film.mp4", sound("a.wav"), "-f", "txt", "--quiet")
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert line.startswith("as2d: film.mp4: ")
    assert "no audio" in line
    assert len((tmp_path / "a.txt").read_text().split()) == 40
    assert not (tmp_path / "film.txt").exists()


def wav_of_unknown_length(path, size):
    """Return a WAV file with `size` where its lengths should be, as programs write it into a pipe."""
    samples, rate = soundfile.read(path, dtype="int16")
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    return (
        struct.pack("<4sI4s", b"RIFF", size, b"WAVE")
        + form
        + struct.pack("<4sI", b"data", size)
        + samples.tobytes()
    )


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0])
def test_a10_a_wav_of_unknown_length_is_heard_through_a_pipe(scripted, sound, tmp_path, size):
    code, out, err = run(["-", "--json"], tmp_path, wav_of_unknown_length(sound("a.wav"), size))
    assert code == 0, err
    assert '"file": "stdin"' in out
    assert '"duration": 2.0' in out


@pytest.mark.parametrize("container", ["FLAC", "OGG", "MP3"])
def test_a10_other_containers_are_heard_through_a_pipe_too(scripted, sound, tmp_path, container):
    samples, rate = soundfile.read(sound("a.wav"))
    soundfile.write(tmp_path / "piped", samples, rate, format=container)
    code, out, err = run(["-"], tmp_path, (tmp_path / "piped").read_bytes())
    assert (code, len(out.split())) == (0, 40), err


def test_a12_useless_drafts_change_no_text_and_the_report_shows_what_they_cost(as2d, scripted, sound):
    plain = as2d("transcribe", sound("a.wav"), "--drafter", "none").out
    scripted({"step_ms": 2.0}, {"error_rate": 1.0, "seed": 7, "delay_ms": 0.5})
    ended = as2d("transcribe", sound("a.wav"), "--draft-tokens", "8")
    assert ended.out == plain
    assert "1.00 tokens per step, 0% of proposed tokens accepted" in ended.err
    compared = as2d("transcribe", sound("a.wav"), "--draft-tokens", "8", "--compare", "--json").records()[-1]
    found = compared["report"]["comparison"]
    assert (found["identical"], found["windows"]) == (1, 1)
    assert found["speedup"] == pytest.approx(found["target_only_s"] / found["drafted_s"], rel=1e-3)
    stats = compared["report"]["stats"]
    assert (stats["acceptance"], stats["steps"], stats["proposed"] > 0) == (0, stats["tokens"], True)


def test_standard_input_names_its_outputs_and_is_done_anew_when_it_holds_something_else(
    scripted, sound, tmp_path
):
    one, other = sound("a.wav").read_bytes(), sound("b.wav").read_bytes()
    assert run(["-", "-f", "txt"], tmp_path, one)[0] == 0
    text = (tmp_path / "stdin.txt").read_text()
    assert len(text.split()) == 40
    assert run(["-", "-f", "txt", "-v"], tmp_path, one)[1:2] == ("",)
    assert run(["-", "-f", "txt"], tmp_path, other)[1] == (tmp_path / "stdin.txt").read_text() != text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-", "-"], "- is given twice"),
        (["-", "--files-from", "-"], "both mean standard input"),
        (["a.wav", "--null"], "--null does nothing without a list"),
        (["--files-from", "gone"], "gone: the list cannot be read"),
        (["a.wav", "--prompt", " "], "--prompt is empty"),
        (["a.wav", "--hotwords", ""], "--hotwords is empty"),
        (["a.wav", "-o", ""], "--output-dir is empty"),
        (["a.wav", "--prompt", "caf\udce9"], "prompt and hotwords: not valid UTF-8: 'caf\\udce9'"),
        (["a.wav", "--quiet", "--progress"], "--quiet and --progress contradict"),
        (["a.wav", "--prompt", "one " * 21], "prompt and hotwords are 21 tokens, model 'speaker' takes 20"),
    ],
)
def test_inputs_and_prompts_that_make_no_sense_are_refused(scripted, sound, tmp_path, arguments, said):
    sound("a.wav")
    code, out, err = run(arguments, tmp_path, b"")
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_a_name_that_cannot_be_looked_up_is_not_told_to_be_missing(scripted, tmp_path):
    code, out, err = run(["x" * 300], tmp_path, b"")
    assert (code, out) == (1, "")
    assert "x: cannot be opened: File name too long" in err


def test_empty_standard_input_is_a_failed_file_and_not_a_crash(scripted, tmp_path):
    code, out, err = run(["-"], tmp_path, b"")
    assert (code, out) == (1, "")
    assert err.startswith("as2d: stdin: the file is empty")


def test_a_list_of_files_can_come_through_a_pipe(scripted, sound, tmp_path):
    sound("a b.wav"), sound("c.wav")
    code, out, _ = run(["--files-from", "-", "--json"], tmp_path, b"a b.wav\n\ngone.wav\nc.wav\n")
    assert code == 1
    assert [name in out for name in ('"a b.wav"', '"c.wav"', '"gone.wav: no such file"')] == [True] * 3
    code, out, _ = run(["--files-from", "-", "-0", "--json"], tmp_path, b"a b.wav\0c.wav\0")
    assert (code, out.count('"duration"')) == (0, 2)
    code, _, err = run(["--files-from", "-"], tmp_path, b"a b.wav\0c.wav\0")
    assert code == 1
    assert err.startswith("as2d: a b.wav?c.wav?: no file has a NUL byte in its name (--null is for lists")


def test_a_folder_is_mirrored_below_the_chosen_one_and_done_once(as2d, scripted, sound, tmp_path):
    sound("talks/a.wav"), sound("talks/deep/a.wav")
    (tmp_path / "talks" / "deep" / "notes.md").write_text("no sound")
    ended = as2d("transcribe", "talks", "-o", "out")
    assert ended.code == 0
    assert tree(tmp_path / "out") == ["a.txt", "deep/a.txt"]
    assert "as2d: talks: ignored 1 file that is no audio" in ended.err
    assert as2d("transcribe", "talks", "talks/deep/a.wav", "-f", "txt,srt").code == 0
    assert tree(tmp_path / "talks" / "deep") == ["a.srt", "a.txt", "a.wav", "notes.md"]
    again = as2d("transcribe", "talks", "-f", "txt,srt", "--json").records()
    assert again[-1]["report"]["skipped"] == again[-1]["report"]["files"] == 2


def test_only_what_is_missing_stale_or_asked_for_otherwise_is_done_again(as2d, scripted, sound, tmp_path):
    sources = [sound(f"{name}.wav") for name in "abcd"]
    assert as2d("transcribe", *sources, "-f", "txt,srt").code == 0
    texts = {path.name: path.read_text() for path in tmp_path.glob("*.txt")}

    def done(*options):
        records = as2d("transcribe", *sources, "-f", "txt,srt", "--json", *options).records()
        return {Path(record["file"]).stem for record in records[:-1] if "text" in record}

    assert done() == set()
    (tmp_path / "a.srt").unlink()
    sound("b.wav", 3)
    (tmp_path / "c.txt").write_text("corrected by hand")
    assert done() == {"a", "b"}
    assert (tmp_path / "a.txt").read_text() == texts["a.txt"]
    assert (tmp_path / "b.txt").read_text() != texts["b.txt"]
    assert (tmp_path / "c.txt").read_text() == "corrected by hand"
    assert done("--drafter", "none") == set()  # drafts change nothing
    assert done("--prompt", "about the") == {"a", "b", "c", "d"}  # of c, the subtitles
    assert (tmp_path / "c.txt").read_text() == "corrected by hand"
    scripted({"seed": 2})
    assert done("--prompt", "about the") == {"a", "b", "c", "d"}
    assert done("--prompt", "about the", "--overwrite") == {"a", "b", "c", "d"}
    assert len((tmp_path / "c.txt").read_text().split()) == 40


def test_a_kept_output_that_is_not_known_to_be_ours_is_named_with_the_reason(as2d, scripted, sound, tmp_path):
    source = sound("a.wav")
    assert as2d("transcribe", source, "-f", "txt").code == 0
    assert as2d("transcribe", source, "-f", "txt").err.count("a.wav:") == 0
    assert "skipped, nothing is left to do" in as2d("transcribe", source, "-f", "txt", "-v").err
    (tmp_path / "a.txt").write_text("corrected by hand")
    (tmp_path / "a.srt").write_text("of unknown origin")
    err = as2d("transcribe", source, "-f", "txt,srt").err
    assert "kept a.txt: changed since as2d wrote it (--overwrite makes it anew)" in err
    assert "kept a.srt: not known to be made by as2d" in err


def test_the_first_failure_ends_the_run_if_that_is_asked(as2d, scripted, sound, tmp_path):
    (tmp_path / "bad.wav").write_text("no sound")
    names = [sound("a.wav"), "bad.wav", sound("b.wav")]
    ended = as2d("transcribe", *names, "--fail-fast", "-f", "txt")
    assert ended.code == 1
    assert "as2d: 1 of 3 files done, 1 failed, stopped at the first failure" in ended.err
    assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["a.txt"]
    assert "3 files done" in as2d("transcribe", sound("a.wav"), names[2], sound("c.wav"), "--fail-fast").err


def test_hotwords_and_prompt_reach_the_models_and_are_counted_together(as2d, scripted, sound):
    source = sound("a.wav")
    plain, prompted = as2d("transcribe", source), as2d("transcribe", source, "--prompt", "about")
    assert prompted.out != plain.out
    assert " 0% of proposed" not in prompted.err  # the drafter heard of it, too
    assert as2d("transcribe", source, "--hotwords", "about").out == prompted.out
    too_long = as2d("transcribe", source, "--hotwords", "about " * 11, "--prompt", "about " * 11)
    assert too_long.code == 2
    assert "prompt and hotwords are 22 tokens" in too_long.err
    scripted({"max_prompt_tokens": 0})
    assert "takes no prompt" in as2d("transcribe", source, "--prompt", "about").err
