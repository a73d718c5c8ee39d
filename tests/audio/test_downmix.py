"""Of many channels that is heard in which somebody speaks; music, effects and rumble do not drown it."""

import io
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from as2d_cli.audio import downmix
from as2d_cli.audio.downmix import Downmix
from as2d_cli.audio.readers import DEFAULT_LAYOUTS, Chunk
from as2d_cli.audio.stream import open_audio

RATE = 16_000
FILM = DEFAULT_LAYOUTS[6]


@pytest.fixture(scope="module")
def speech():
    return soundfile.read(Path(__file__).parents[1] / "data" / "jfk.flac", dtype="float32")[0]


def music(seed, level, length=11 * RATE):
    """Return chords, and steps in between."""
    generator = np.random.default_rng(seed)
    seconds = np.arange(length) / RATE
    chords = 220 * 2 ** (generator.choice([0, 3, 5, 7, 10], 2 * len(seconds) // RATE + 1) / 12)
    tones = chords[(seconds * 2).astype(int)]
    sound = sum(np.sin(2 * np.pi * tones * factor * seconds) for factor in (1, 1.26, 1.5, 2, 3))
    sound += generator.normal(size=length) * (seconds % 0.5 < 0.05)
    return (level * sound / np.sqrt(np.mean(sound**2))).astype(np.float32)


def rms(samples):
    return float(np.sqrt(np.mean(samples**2)))


def mixed(channels, layout=(), *, size=RATE):
    """Return the mix of whole seconds of channels of equal length."""
    samples = np.stack(channels, axis=1)
    chunks = (Chunk(samples[at : at + size], RATE, layout) for at in range(0, len(samples), size))
    return np.concatenate([mono for mono, _ in Downmix("film").mono(chunks)])


def likeness(one, other):
    return float(np.corrcoef(one, other)[0, 1])


def film(speech, louder):
    """Return six channels: speech in the centre, music `louder` times as loud beside it, rumble, effects."""
    level = rms(speech) * louder
    rumble = np.sin(np.arange(len(speech)) * 2 * np.pi * 50 / RATE).astype(np.float32) * 0.5
    left, right, back_left, back_right = (music(seed, level) for seed in range(4))
    return [left, right, speech, rumble, back_left / 2, back_right / 2]


@pytest.mark.parametrize("louder", [0.5, 2.0, 4.0])
def test_of_a_film_the_centre_is_heard_where_somebody_speaks_in_it(speech, louder):
    assert likeness(mixed(film(speech, louder), FILM), speech) > 0.98


def test_libsndfiles_names_of_channels_are_understood_too(speech):
    assert likeness(mixed(film(speech, 4.0), ("L", "R", "C", "LFE", "Ls", "Rs")), speech) > 0.98


def test_where_nobody_speaks_all_channels_but_the_lowest_are_heard_by_their_weights(speech):
    left, right, _, rumble, back_left, back_right = film(speech, 1.0)
    silence = np.zeros_like(speech)
    heard = mixed([left, right, silence, rumble, back_left, back_right], FILM)
    total = 1.0 + 2 * 0.5**0.5 + 2 * 0.5
    expected = (0.5**0.5 * (left + right) + 0.5 * (back_left + back_right)) / total
    np.testing.assert_allclose(heard, expected, atol=1e-5)


def test_the_same_in_all_channels_is_heard_at_its_level(speech):
    np.testing.assert_allclose(mixed([speech] * 6, FILM), speech, atol=1e-5)
    np.testing.assert_allclose(mixed([speech] * 8), speech, atol=1e-5)
    np.testing.assert_allclose(mixed([speech] * 34), speech, atol=1e-5)


def test_dialogue_beside_the_centre_is_heard_when_the_centre_is_silent(speech):
    half = len(speech) // 2 // RATE * RATE
    left, centre = speech.copy(), speech.copy()
    left[:half], centre[half:] = 0.0, 0.0
    heard = mixed([left, music(1, 0.05), centre, 0 * left, music(2, 0.02), music(3, 0.02)], FILM)
    assert likeness(heard[:half], speech[:half]) > 0.98
    assert likeness(heard[half:], speech[half:]) > 0.95


def test_every_microphone_of_a_file_without_a_layout_is_heard(speech):
    channels = [music(seed, 0.01) for seed in range(6)]
    for number, begin in enumerate(range(0, 9 * RATE, 3 * RATE)):
        channels[(2, 3, 5)[number]][begin : begin + 2 * RATE] = speech[begin : begin + 2 * RATE]
    heard = mixed(channels)
    for begin in range(0, 9 * RATE, 3 * RATE):
        part = slice(begin + RATE // 4, begin + 2 * RATE - RATE // 4)
        assert likeness(heard[part], speech[part]) > 0.8


def test_of_stereo_with_music_on_one_side_the_side_that_speaks_is_heard(speech):
    for channels in ([speech, music(1, 0.2)], [music(1, 0.2), speech]):
        heard = mixed(channels)
        assert likeness(heard[RATE:], speech[RATE:]) > 0.98


def test_an_interview_on_two_sides_is_heard_on_both(speech):
    other = np.roll(speech, 4 * RATE) * 0.8
    heard = mixed([speech, other])
    np.testing.assert_allclose(heard[2 * RATE :], (speech + other)[2 * RATE :] / 2, atol=1e-5)


def test_stereo_with_a_common_voice_is_averaged(speech):
    channels = [speech + music(1, 0.02), speech + music(2, 0.02)]
    np.testing.assert_allclose(mixed(channels), sum(channels) / 2, atol=1e-6)


def test_channels_that_cancel_are_not_mixed(speech):
    assert likeness(np.abs(mixed([speech, -speech])), np.abs(speech)) > 0.99


def test_a_change_of_channels_is_without_a_step(speech):
    chunk = np.stack([0 * speech, music(1, 0.3), 0 * speech], axis=1)
    chunk[5 * RATE :, 2] = speech[5 * RATE :]
    heard = mixed(list(chunk.T), ("FL", "FR", "FC"))
    assert np.abs(np.diff(heard)).max() < 1.2 * np.abs(np.diff(chunk @ np.float32([0.29, 0.29, 0.42]))).max()


def test_channels_may_change_midway(speech):
    film_part = Chunk(np.stack(film(speech, 2.0), axis=1)[: 3 * RATE], RATE, FILM)
    stereo = Chunk(np.stack([speech, speech], axis=1)[3 * RATE : 6 * RATE], RATE, ("FL", "FR"))
    mono = Chunk(speech[6 * RATE :, None], RATE, ("FC",))
    lengths = [len(part) for part, _ in Downmix("film").mono(iter([film_part, stereo, mono]))]
    assert lengths == [3 * RATE, 3 * RATE, 5 * RATE]


def test_nothing_is_loaded_for_ordinary_recordings(speech, monkeypatch):
    monkeypatch.setattr(downmix, "SpeechDetector", lambda: None)
    mixed([speech])
    mixed([speech, speech / 2])
    mixed([speech, 0 * speech])


@pytest.mark.parametrize(
    ("container", "codec", "layout"), [("matroska", "ac3", "5.1(side)"), ("mp4", "aac", "5.1")]
)
def test_the_layout_of_a_film_is_found_in_the_file(speech, container, codec, layout):
    file = io.BytesIO()
    channels = film(speech, 2.0)
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=48_000, layout=layout)
        stream.bit_rate = 448_000
        frame = av.AudioFrame.from_ndarray(np.stack(channels), "fltp", layout)
        frame.sample_rate = RATE
        for converted in av.AudioResampler(stream.format, layout, 48_000).resample(frame):
            output.mux(stream.encode(converted))
        output.mux(stream.encode())
    heard = np.concatenate(list(open_audio(file).blocks()))
    best = max(likeness(heard[delay : delay + 9 * RATE], speech[: 9 * RATE]) for delay in range(0, 1200))
    assert best > 0.95


@pytest.mark.parametrize("format_", ["WAV", "WAVEX", "FLAC"])
@pytest.mark.parametrize("n_channels", [6, 8])
def test_files_of_six_and_eight_channels_have_the_usual_order(speech, format_, n_channels):
    channels = film(speech, 2.0)
    channels += [music(7, rms(speech)), music(8, rms(speech))][: n_channels - 6]
    file = io.BytesIO()
    soundfile.write(file, np.stack(channels, axis=1) / 2, RATE, format=format_, subtype="PCM_24")
    heard = np.concatenate(list(open_audio(file).blocks()))
    assert likeness(heard, speech) > 0.98
