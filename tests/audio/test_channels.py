"""Channels that are heard apart: all of them, each in its place, in any chunks."""

import io

import numpy as np
import pytest
import soundfile

from as2d_cli.audio.channels import Apart
from as2d_cli.audio.readers import Chunk
from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.tracks import EACH, AudioChoice
from as2d_cli.audio.windows import split_apart
from as2d_cli.domain.errors import AudioError

GENERATOR = np.random.default_rng(5)


def noise(seconds, rate=16_000):
    return GENERATOR.normal(0, 0.1, round(seconds * rate)).astype(np.float32)


def opened(*columns, rate=16_000):
    file = io.BytesIO()
    soundfile.write(file, np.stack(columns, axis=1), rate, format="WAV", subtype="FLOAT")
    return open_audio(file, AudioChoice(channel=EACH))


def test_channels_are_passed_on_as_they_are():
    left, right = noise(2.5), noise(2.5)
    heard = np.concatenate(list(opened(left, right).blocks()))
    np.testing.assert_array_equal(heard, np.stack([left, right], axis=1))


def test_channels_are_resampled_together():
    stream = opened(noise(3, 44_100), np.zeros(3 * 44_100, np.float32), rate=44_100)
    heard = np.concatenate(list(stream.blocks()))
    assert heard.shape == (48_000, 2)
    assert heard[:, 0].std() > 0.05
    assert not heard[:, 1].any()
    assert stream.duration_s == 3


def test_the_windows_of_each_channel_are_all_of_it_and_come_as_they_begin():
    columns = [noise(100), noise(100), np.zeros(1_600_000, np.float32)]
    windows = list(split_apart(opened(*columns).blocks()))
    assert [window.index for window in windows] == list(range(len(windows)))
    begins = [window.start for window in windows]
    assert begins == sorted(begins)
    for number, column in enumerate(columns, 1):
        heard = [window.samples for window in windows if window.channel == number]
        np.testing.assert_array_equal(np.concatenate(heard), column)


def test_the_only_channel_of_mono_has_no_number():
    column = noise(40)
    windows = list(split_apart(opened(column).blocks()))
    assert {window.channel for window in windows} == {None}
    np.testing.assert_array_equal(np.concatenate([window.samples for window in windows]), column)


def test_channels_that_hold_the_same_are_told():
    one, other = noise(2), noise(2)
    stream = opened(one, other, 0.5 * one, np.zeros_like(one))
    list(stream.blocks())
    assert stream.warnings == ["channels 1 and 3 hold the same, which is written twice: leave out --channel"]


def test_a_channel_that_hears_the_other_speaker_softly_does_not_hold_the_same():
    one, other = noise(2), noise(2)
    stream = opened(one + 0.3 * other, other + 0.3 * one)
    list(stream.blocks())
    assert stream.warnings == []


def test_channels_that_a_later_part_lacks_are_silent_there():
    stereo, mono = np.stack([noise(1), noise(1)], axis=1), noise(1)[:, None]
    _, (later, rate) = Apart("talk.ogg").columns(iter([Chunk(stereo, 16_000), Chunk(mono, 8_000)]))
    assert rate == 8_000
    np.testing.assert_array_equal(later, np.concatenate([mono, np.zeros_like(mono)], axis=1))


def test_channels_that_come_later_are_an_error():
    stereo, mono = np.stack([noise(1), noise(1)], axis=1), noise(2)[:, None]
    with pytest.raises(AudioError, match=r"talk\.ogg: has 2 channels from 2\.0 s, before that fewer"):
        list(Apart("talk.ogg").columns(iter([Chunk(mono, 16_000), Chunk(stereo, 16_000)])))


@pytest.mark.parametrize("n_channels", [1, 2])
def test_silence_before_the_first_sound_has_its_channels(n_channels):
    silence, sound = np.zeros((16_000, 1), np.float32), np.stack([noise(1)] * n_channels, axis=1)
    chunks = [Chunk(silence, 16_000), Chunk(silence, 16_000), Chunk(sound, 48_000), Chunk(silence, 16_000)]
    heard = list(Apart("talk.mkv").columns(iter(chunks)))
    assert [(samples.shape, rate) for samples, rate in heard] == [
        *(((16_000, n_channels), 16_000), ((16_000, n_channels), 16_000)),
        *(((16_000, n_channels), 48_000), ((16_000, n_channels), 16_000)),
    ]
    np.testing.assert_array_equal(heard[2][0], sound)


def test_nothing_but_silence_is_mono():
    silence = Chunk(np.zeros((16_000, 1), np.float32), 16_000)
    heard = list(Apart("talk.mkv").columns(iter([silence, silence])))
    assert [samples.shape for samples, _ in heard] == [(16_000, 1)] * 2
