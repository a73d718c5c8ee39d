"""What users of other tools came upon, and what must not happen here: odd sounds, seams, odd characters.

Each test names the public thread that it is about.
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pysubs2
import pytest
import soundfile
import webvtt

DATA = Path(__file__).parents[1] / "data"
CLIPS = sorted(path for path in DATA.iterdir() if path.suffix in {".flac", ".ogg", ".opus"})
ODD = "año 日本語 🎤 naïve"


def president(tmp_path, name, seconds):
    """Write the first seconds of speech of a clip, or as much as there is, again and again."""
    samples, rate_hz = soundfile.read(DATA / "jfk.flac", dtype="float32")
    path = tmp_path / name
    soundfile.write(path, np.resize(samples[8000:], round(seconds * rate_hz)), rate_hz, subtype="FLOAT")
    return path


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("max_tokens", [13, 15, 200])
def test_a3_characters_over_several_tokens_and_windows_stay_whole_or_are_left_out(
    as2d, scripted, sound, tmp_path, max_tokens
):
    """ggml-org/whisper.cpp#3760: one token per byte, and windows that end inside a character."""
    scripted({"text": f"{ODD} ", "tokenizer": "bytes", "max_tokens": max_tokens}, {"tokenizer": "bytes"})
    ended = as2d("transcribe", sound("a.wav", 62), "-f", "all", "--word-timestamps")
    assert ended.code == 0
    whole = ODD.encode()[: max_tokens - 1].decode("utf-8", "ignore").split()
    written = sorted(tmp_path.glob("a.*"))
    assert len(written) == 1 + 9
    for path in written:
        if path.suffix != ".wav":
            text = path.read_bytes().decode("utf-8")  # raises if it is no UTF-8
            assert "\ufffd" not in text
    document = read(tmp_path / "a.json")
    assert set(document["text"].split()) == set(whole)
    heard = [word["word"].strip() for segment in document["segments"] for word in segment["words"]]
    assert document["text"].split() == [word for word in heard if word]


def test_a4_where_nobody_speaks_all_outputs_are_empty_and_valid(as2d, scripted, tmp_path):
    """SYSTRAN/faster-whisper#1208, m-bain/whisperX#115: no-speech audio with the language left open."""
    seconds = np.arange(35 * 16000) / 16000
    sounds = {
        "silence": np.zeros_like(seconds),
        "noise": np.random.default_rng(1).normal(0, 0.1, len(seconds)),
        "tone": 0.5 * np.sin(2 * np.pi * 440 * seconds),
    }
    for name, samples in sounds.items():
        soundfile.write(tmp_path / f"{name}.wav", samples, 16000)
    ended = as2d("transcribe", *(f"{name}.wav" for name in sounds), "-f", "all", "--json")
    assert ended.code == 0
    *records, report = ended.records()
    assert [(record["text"], record["language"]) for record in records] == [("", None)] * len(sounds)
    assert (report["report"]["silent_windows"], report["report"]["done"]) == (2 * len(sounds), len(sounds))
    for name in sounds:
        assert f"{name}.wav: warning: no speech found: the transcript is empty" in ended.err
        check_empty(tmp_path / name)


def check_empty(stem):
    """Look at the outputs of 35 s without speech."""
    document = read(stem.with_suffix(".json"))
    assert (document["text"], document["segments"], document["language"]) == ("", [], None)
    assert document["duration"] == 35.0
    assert pysubs2.load(str(stem.with_suffix(".srt")), format_="srt").events == []
    assert webvtt.read(stem.with_suffix(".vtt")).captions == []
    assert pysubs2.load(str(stem.with_suffix(".ass"))).events == []
    empty = {
        "txt": "",
        "jsonl": "",
        "lrc": "",
        "srt": "",
        "tsv": "start\tend\ttext\n",
        "csv": "start,end,text\n",
    }
    assert {name: stem.with_suffix(f".{name}").read_text(encoding="utf-8") for name in empty} == empty


def test_a4_without_voice_detection_silence_is_decoded(as2d, scripted, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(48000), 16000)
    ended = as2d("transcribe", "a.wav", "--no-vad")
    assert ended.code == 0
    assert len(ended.out.split()) == 40


def test_a6_less_than_a_second_is_transcribed_and_has_its_true_duration(as2d, scripted, tmp_path):
    """ggml-org/whisper.cpp#1603: audio less than a second long fails silently."""
    durations = (0.1, 0.5, 0.8)
    paths = [president(tmp_path, f"{seconds}.wav", seconds) for seconds in durations]
    ended = as2d("transcribe", *paths, "--json")
    *documents, _ = ended.records()
    assert ended.code == 0
    for document, seconds in zip(documents, durations, strict=True):
        assert len(document["text"].split()) == 40
        assert document["duration"] == seconds
        assert 0 < document["segments"][-1]["end"] <= seconds


def test_a7_a_sample_that_is_no_number_is_told_of_and_spoils_nothing(as2d, scripted, tmp_path):
    """huggingface/transformers#47885: one NaN, and confident text without notice."""
    samples, rate_hz = soundfile.read(president(tmp_path, "a.wav", 4), dtype="float32")
    values = (0.0, np.nan, np.inf, -np.inf)
    for value in values:
        samples[24000] = value
        soundfile.write(tmp_path / f"a{value}.wav", samples, rate_hz, subtype="FLOAT")
    ended = as2d("transcribe", *(f"a{value}.wav" for value in values), "--json")
    zero, *spoiled, _ = ended.records()
    assert ended.code == 0
    assert zero["warnings"] == []
    assert zero["text"] != ""
    for document in spoiled:
        assert document["text"] == zero["text"]
        assert "1.50 s" in document["warnings"][0]
        assert document["warnings"][0] in ended.err


def test_a8_audio_longer_than_a_window_is_covered_to_its_end(as2d, scripted, tmp_path):
    """sgl-project/sglang-omni#1173: everything after 30 s is dropped without a word."""
    ended = as2d("transcribe", president(tmp_path, "a.wav", 62), "--json", "--word-timestamps")
    document, report = ended.records()
    words = [word for segment in document["segments"] for word in segment["words"]]
    assert document["duration"] == report["report"]["audio_s"] == 62.0
    assert len(words) == len(document["text"].split()) == 3 * 40
    assert document["segments"][-1]["end"] == 62.0


def test_a9_times_stay_within_the_file_and_never_go_back(as2d, scripted):
    """SYSTRAN/faster-whisper#1334: a last segment that ends after the audio does."""
    *documents, _ = as2d("transcribe", *CLIPS, "--json", "--word-timestamps").records()
    assert len(documents) == len(CLIPS) > 3
    for document in documents:
        assert document["segments"]
        words = [word for segment in document["segments"] for word in segment["words"]]
        for parts in (document["segments"], words):
            times = [time for part in parts for time in (part["start"], part["end"])]
            assert all(earlier <= later for earlier, later in pairwise([0.0, *times, document["duration"]]))
        assert "".join(word["word"] for word in words).split() == document["text"].split()
        assert [token for segment in document["segments"] for token in segment["tokens"]] != []


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_an_ascii_terminal_gets_utf_8_on_stdout_and_no_traceback(as2d, scripted, sound, environment):
    """Whatever the terminal can show, what goes into a pipe or file must be whole."""
    scripted({"text": ODD})
    sound("ünï 日本語 🎤.wav")
    ended = as2d("transcribe", "ünï 日本語 🎤.wav", "gone ñ.wav", "-v", "-f", "txt", **environment)
    assert ended.code == 1
    assert ended.out == f"{ODD}\n"
    assert "Traceback" not in ended.err
    assert "no such file" in ended.err


def test_a_target_in_a_loop_is_told_of_with_file_and_time_and_counted(as2d, scripted, sound):
    """QwenLM/Qwen3-ASR#129: the same words two thousand times, and nothing said about it."""
    scripted({"text": "I think " * 300})
    ended = as2d("transcribe", sound("a.wav", 3), sound("b.wav", 3), "--json")
    assert ended.code == 0
    assert "a.wav: warning: the text from 0.0 s to 3.0 s repeats itself" in ended.err
    first, _, report = ended.records()
    assert first["text"].startswith("I think I think")
    assert len(first["warnings"]) == 1
    assert report["report"]["doubtful_windows"] == 2
    assert "2 windows in a loop, without an end or with words missing" in ended.err


def test_subtitles_have_lines_and_cues_as_asked_for(as2d, scripted, sound, tmp_path):
    """Softcatala/whisper-ctranslate2's --max_line_width, --max_line_count and --max_words_per_line."""
    limits = ("--max_line_width", 20, "--max-line-count", 2, "--max-words-per-line", 4)
    assert as2d("transcribe", sound("a.wav", 9), "-f", "srt,vtt,json", *limits).code == 0
    events = pysubs2.load(str(tmp_path / "a.srt"), format_="srt").events
    lines = [event.plaintext.split("\n") for event in events]
    assert {len(cue) for cue in lines} <= {1, 2}
    assert max(len(cue) for cue in lines) == 2
    assert all(len(line) <= 20 and len(line.split()) <= 4 for cue in lines for line in cue)
    assert [caption.lines for caption in webvtt.read(tmp_path / "a.vtt")] == lines
    document = read(tmp_path / "a.json")
    assert " ".join(line for cue in lines for line in cue) == document["text"]
    assert all("words" not in segment and segment["tokens"] for segment in document["segments"])
    assert len(document["segments"]) < len(events)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-line-width", 40], "--max-line-width does nothing without subtitles"),
        (
            ["--max-words-per-line", 3, "-f", "txt,json"],
            "--max-words-per-line does nothing without subtitles",
        ),
        (["--max-line-count", 2, "-f", "srt"], "--max-line-count does nothing alone"),
        (["--max-line-width", 0, "-f", "srt"], "--max-line-width"),
    ],
)
def test_limits_of_subtitles_that_would_do_nothing_are_refused(refused, scripted, sound, arguments, said):
    ended = refused("transcribe", sound("a.wav"), *arguments)
    assert ended.code == 2
    assert said in ended.err
