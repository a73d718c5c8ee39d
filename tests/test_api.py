"""Transcription from a program: the same as the command, without a guard, without a wait at import."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import soundfile

import as2d_cli
from as2d_cli import AudioError, DecodeError, FileOutcome, ModelError, RequestError, Transcriber, transcribe
from as2d_cli.audio.sources import samples_as_file
from as2d_cli.cli.options.parameters import BatchOptions
from as2d_cli.cli.options.request import read_request
from as2d_cli.engine.engine import Engine

DATA = Path(__file__).parent / "data"


def test_a_function_gives_what_the_command_gives(as2d, scripted, sound):
    source = sound("a.wav", 40)
    (outcome,) = transcribe(source, drafter="hearer")
    assert isinstance(outcome, FileOutcome)
    assert outcome.source == source
    assert outcome.transcript.text + "\n" == as2d("transcribe", source).out
    assert outcome.transcript.segments
    assert outcome.stats.tokens_per_step > 1


def test_all_that_the_command_can_do_can_be_asked_for(scripted, sound, tmp_path):
    sound("talks/a.wav"), sound("talks/deep/b.wav")
    (tmp_path / "talks" / "bad.wav").write_text("no sound")
    outcomes = {
        outcome.source.name: outcome
        for outcome in transcribe(
            [str(tmp_path / "talks")],
            model="speaker",
            drafter="none",
            language="German",
            prompt="about",
            hotwords=["the", "and"],
            word_timestamps=True,
            threads=1,
            output_formats=["txt", "txt"],
            output_dir=tmp_path / "out",
        )
    }
    assert outcomes["bad.wav"].error.message.endswith("not audio, or too damaged to open")
    assert outcomes["a.wav"].transcript.language == "de"
    assert outcomes["a.wav"].transcript.drafter is None
    assert outcomes["a.wav"].transcript.segments[0].words
    assert outcomes["b.wav"].written == (tmp_path / "out" / "deep" / "b.txt",)
    (again,) = transcribe(
        sound("talks/a.wav"),
        prompt="about",
        hotwords=["the", "and"],
        language="de",
        output_formats=["txt"],
        output_dir=tmp_path / "out",
    )
    assert again.is_skipped


def test_channels_heard_apart_are_as_the_command_has_them(as2d, scripted, sound, tmp_path):
    speech, rate = soundfile.read(sound("a.wav", 40), dtype="float32")
    talk = tmp_path / "talk.wav"
    soundfile.write(talk, np.stack([speech, np.roll(speech, rate)], axis=1), rate)
    (outcome,) = transcribe(talk, channel="each")
    with Transcriber(channel="each") as transcriber:
        assert tuple(transcriber.transcribe(io.BytesIO(talk.read_bytes()))) == outcome.transcript.segments
    lines = as2d("transcribe", talk, "--channel", "each", "-f", "txt").out.splitlines()
    assert {line.partition(":")[0] for line in lines} == {"Channel 1", "Channel 2"}
    assert " ".join(line.partition(": ")[2] for line in lines) == outcome.transcript.text
    assert "1 skipped" in as2d("transcribe", talk, "--channel", "each", "-f", "txt").err


def test_a_translation_is_what_the_command_gives(as2d, scripted, sound, tmp_path):
    options = {"translate_to": "en", "language": "de", "output_formats": ["txt"]}
    (outcome,) = transcribe(sound("a.wav"), **options)
    assert (outcome.transcript.task, outcome.written) == ("translate", (tmp_path / "a.en.txt",))
    assert "1 skipped" in as2d("translate", "a.wav", "--language", "de", "-f", "txt").err
    with pytest.raises(RequestError, match="'speaker' does not translate to german"):
        next(transcribe(sound("a.wav"), translate_to="de"))


def test_hotwords_and_prompt_are_joined_as_the_command_does(as2d, scripted, sound):
    source = sound("a.wav")
    (outcome,) = transcribe(source, prompt="about", hotwords=["the", "and"])
    (same,) = transcribe(source, prompt="about", hotwords="the, and", output_formats="txt, srt")
    assert same.transcript.text == outcome.transcript.text
    assert [path.suffix for path in same.written] == [".txt", ".srt"]
    said = as2d("transcribe", source, "--prompt", "about", "--hotwords", "the, and").out
    assert outcome.transcript.text + "\n" == said


def test_by_default_it_asks_for_what_the_command_asks_for(monkeypatch, tmp_path):
    (tmp_path / "models.toml").write_text(
        'schema = 1\npairs.more = { target = "whisper-base", drafter = "whisper-tiny" }'
    )
    monkeypatch.setenv("AS2D_MODELS", str(tmp_path / "models.toml"))
    asked = Mock()
    monkeypatch.setattr("as2d_cli.api.BatchRun", asked)
    asked.return_value.run.return_value = iter(())
    assert not list(transcribe("a.wav"))
    request, *_ = asked.call_args.args
    command, _ = read_request(BatchOptions(files=["a.wav"]))
    assert [one.name for one in (request.drafter, *request.others)] == [
        "whisper-tiny.en",
        "whisper-tiny",
    ]
    assert request == replace(command, timed=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"language": "germn"},
        {"output_formats": ["str"]},
        {"output_formats": ","},
        {"drafter": "speakr"},
        {"threads": -1},
    ],
)
def test_what_makes_no_sense_is_refused(scripted, sound, wrong):
    with pytest.raises(as2d_cli.As2dError):
        next(transcribe(sound("a.wav"), **wrong))


def test_closing_early_leaves_no_process(scripted, sound):
    outcomes = transcribe([sound("a.wav"), sound("b.wav"), sound("c.wav")])
    next(outcomes)
    outcomes.close()
    assert not [one for one in multiprocessing.active_children() if one.name.startswith("as2d")]


def test_a_program_may_have_closed_its_standard_streams(scripted, sound):
    code = (
        "import os, sys\nos.closerange(0, 3)\nfrom as2d_cli import transcribe\n"
        "(outcome,) = transcribe(sys.argv[1])\nos._exit(0 if outcome.transcript else 5)"
    )
    ended = subprocess.run([sys.executable, "-c", code, sound("a.wav")], check=False, timeout=60)
    assert ended.returncode == 0


def test_a_program_may_end_with_a_run_left_open(scripted, sound):
    code = (
        "from as2d_cli import transcribe\n"
        f"outcomes = transcribe([{str(sound('a.wav'))!r}, {str(sound('b.wav'))!r}])\n"
        "print(next(outcomes).error)\n"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "None\n", "")


@pytest.mark.parametrize("piped", [False, True])
def test_a_script_needs_no_guard_and_a_prompt_will_do(scripted, sound, tmp_path, piped):
    script = tmp_path / "script.py"
    script.write_text(
        "from as2d_cli import transcribe\nprint('once')\n"
        f"for outcome in transcribe({str(sound('a.wav'))!r}):\n"
        "    print(len(outcome.transcript.text.split()))\n"
    )
    with script.open() as stdin:
        command = [sys.executable, "-" if piped else script]
        ended = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr) == ("once\n40\n", "")


def test_importing_the_package_is_cheap_and_every_public_name_is_there():
    code = (
        "import sys, as2d_cli\n"
        "assert not {'numpy', 'typer', 'rich'} & set(sys.modules)\n"
        "from as2d_cli import *\n"
        "assert callable(transcribe)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'transcrib'"):
        _ = as2d_cli.transcrib


def test_it_works_in_a_process_of_a_pool(scripted, sound, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, sys\nfrom as2d_cli import transcribe\n"
        "def heard(path):\n    return [outcome.error for outcome in transcribe(path)]\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(heard, sys.argv[1:]), multiprocessing.current_process().daemon)\n"
    )
    command = [sys.executable, script, sound("a.wav")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr) == ("[[None]] False\n", "")


@pytest.fixture
def transcriber(scripted):
    with Transcriber(language="en") as kept:
        yield kept


def processes():
    return [one.pid for one in multiprocessing.active_children() if one.name.startswith("as2d")]


def test_models_are_loaded_once_for_any_number_of_recordings(transcriber, sound):
    assert processes() == [], "nothing is loaded before it is needed"
    first, second = sound("a.wav", 40), sound("b.wav", 3)
    texts = [transcriber.transcribe(path).transcript.text for path in (first, second)]
    loaded = processes()
    assert loaded
    outcomes = list(transcriber.transcribe_files([first, second]))
    assert [outcome.transcript.text for outcome in outcomes] == texts
    assert texts[0] != texts[1]
    assert processes() == loaded
    transcriber.close()
    assert processes() == []
    assert transcriber.transcribe(second).transcript.text == texts[1], "it is loaded anew"


def test_a_recording_gives_the_same_transcript_however_it_is_handed_over(transcriber, sound):
    path = sound("a.wav", 40)
    (outcome,) = transcriber.transcribe_files(path)
    samples, rate = soundfile.read(path, dtype="float32")
    stereo = np.stack([samples, samples], axis=1).astype(np.float64)
    with path.open("rb") as file:
        for audio in [(path,), (str(path),), (file,), (samples, rate), (stereo, rate)]:
            assert transcriber.transcribe(*audio).transcript == replace(outcome.transcript, cues=None)


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "i4", "i8"])
def test_integers_are_samples_over_their_whole_range(kind):
    info = np.iinfo(kind)
    middle = (int(info.max) + int(info.min) + 1) // 2
    ends = np.array([info.min, middle, info.max], kind)
    read, rate = soundfile.read(samples_as_file(ends, 8000), dtype="float32")
    assert rate == 8000
    assert read == pytest.approx([-1.0, 0.0, 1.0], abs=0.01)


def test_segments_come_as_windows_are_finished_and_are_those_of_the_transcript(transcriber, sound):
    recording = transcriber.transcribe(sound("long.wav", 100))
    early = next(iter(recording))
    assert recording._work.returned < 4, "the rest is still to be decoded"
    segments = list(recording)
    assert segments[0] == early
    assert tuple(segments) == recording.transcript.segments == tuple(recording)
    assert " ".join(segment.text for segment in segments) == recording.transcript.text
    assert recording.warnings == ()


def test_segments_have_words_if_they_are_asked_for(scripted, sound):
    with Transcriber(word_timestamps=True) as transcriber:
        (segment, *_) = transcriber.transcribe(sound("a.wav"))
    assert segment.words


def test_a_recording_that_fails_raises_each_time_it_is_asked_and_the_next_one_is_decoded(
    transcriber, sound, tmp_path
):
    (tmp_path / "bad.wav").write_text("no sound")
    bad = transcriber.transcribe(tmp_path / "bad.wav")
    for _ in range(2):
        with pytest.raises(AudioError, match=r"bad\.wav: not audio"):
            list(bad)
        with pytest.raises(AudioError):
            _ = bad.transcript
    assert transcriber.transcribe(sound("a.wav")).transcript.text


def test_a_target_that_dies_fails_one_recording_and_the_next_one_is_decoded(transcriber, sound):
    source = sound("long.wav", 200)
    whole = transcriber.transcribe(source).transcript
    broken = transcriber.transcribe(source)
    next(iter(broken))
    target = next(one for one in multiprocessing.active_children() if one.name == "as2d target")
    os.kill(target.pid, signal.SIGKILL)
    with pytest.raises(DecodeError, match="the target's process was ended by signal 9"):
        list(broken)
    assert transcriber.transcribe(source).transcript == whole


def test_a_recording_that_is_left_for_another_says_so_and_spoils_nothing(transcriber, sound):
    left = transcriber.transcribe(sound("long.wav", 100))
    known = next(iter(left))
    other = transcriber.transcribe(sound("a.wav", 40)).transcript
    assert other == transcriber.transcribe(sound("a.wav", 40)).transcript
    with pytest.raises(RequestError, match="was ended before it was finished"):
        _ = left.transcript
    assert next(iter(left)) == known


@pytest.mark.parametrize(
    ("audio", "message"),
    [
        ((np.zeros(9, np.float32),), "samples need their rate"),
        ((np.zeros(9, bool), 16_000), "an array of bool with 1 dimensions is no audio"),
        ((np.zeros((1, 2, 3)), 16_000), "an array of float64 with 3 dimensions is no audio"),
        ((np.zeros(9), 0), "there is no sample rate of 0 Hz"),
        ((io.StringIO("a"),), "StringIO is no audio"),
        ((5,), "int is no audio"),
    ],
)
def test_what_is_no_audio_is_refused(transcriber, audio, message):
    with pytest.raises(RequestError, match=message):
        transcriber.transcribe(*audio)


def test_a_request_of_a_program_is_checked_as_the_commands_is(scripted, sound):
    with pytest.raises(RequestError, match="--address does nothing without a cluster"):
        Transcriber(address="head:6379")
    with pytest.raises(RequestError, match="--overwrite does nothing without files to write"):
        next(transcribe(sound("a.wav"), overwrite=True))
    with pytest.raises(RequestError, match="a cluster takes files only"):
        Transcriber(engine="ray").transcribe(sound("a.wav"))


def test_a_program_may_end_with_its_models_loaded(scripted, sound):
    code = (
        "from as2d_cli import Transcriber\n"
        f"recording = Transcriber().transcribe({str(sound('a.wav', 70))!r})\n"
        "print(len(next(iter(recording)).text) > 0)\n"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_all_segments_come_also_when_the_rest_is_asked_for_meanwhile(transcriber, sound):
    recording = transcriber.transcribe(sound("long.wav", 200))
    segments = []
    for segment in recording:
        segments.append(segment)
        assert recording.warnings == (), "this decodes all of it"
    assert tuple(segments) == recording.transcript.segments


def test_a_run_of_files_is_not_disturbed_by_a_recording(transcriber, sound):
    first, second = sound("a.wav"), sound("b.wav", 3)
    outcomes = transcriber.transcribe_files([first, second])
    texts = [next(outcomes).transcript.text]
    with pytest.raises(RequestError, match="a run of files is not finished"):
        transcriber.transcribe(first)
    with pytest.raises(RequestError, match="a run of files is not finished"):
        next(transcriber.transcribe_files([first]))
    texts += [outcome.transcript.text for outcome in outcomes]
    assert [transcriber.transcribe(path).transcript.text for path in (first, second)] == texts


def test_a_run_of_files_that_is_closed_early_makes_room_for_the_next(transcriber, sound):
    files = [sound("a.wav"), sound("b.wav", 3)]
    texts = [transcriber.transcribe(path).transcript.text for path in files]
    outcomes = transcriber.transcribe_files(files)
    next(outcomes)
    outcomes.close()
    assert [outcome.transcript.text for outcome in transcriber.transcribe_files(files)] == texts


def test_models_that_cannot_be_kept_alive_are_loaded_anew(transcriber, sound, monkeypatch):
    def dead(*_, **__):
        raise ModelError("the target died too often")

    source = sound("a.wav")
    transcriber.load()
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "run", dead)
        with pytest.raises(ModelError):
            _ = transcriber.transcribe(source).transcript
    assert processes() == []
    assert transcriber.transcribe(source).transcript.text


def test_models_are_ended_at_once_in_the_middle_of_a_recording(scripted, sound):
    scripted({"words": 20, "encode_ms": 2000.0})
    with Transcriber(drafter="none") as transcriber:
        next(iter(transcriber.transcribe(sound("long.wav", 200))))
        began = time.monotonic()
    assert time.monotonic() - began < 1.5, "a process that is asked to end gets 2 s"
    assert processes() == []
