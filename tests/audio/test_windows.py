from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.domain.types import SAMPLE_RATE_HZ, WINDOW_S

DATA = Path(__file__).parents[1] / "data"
LONGEST = int(WINDOW_S * SAMPLE_RATE_HZ)


def noise_with_pauses(seconds, seed):
    generator = np.random.default_rng(seed)
    samples = generator.standard_normal(int(seconds * SAMPLE_RATE_HZ)).astype(np.float32) * 0.1
    for _ in range(generator.integers(0, 40)):
        start = generator.integers(0, max(1, len(samples)))
        samples[start : start + generator.integers(800, 16_000)] *= 0.001
    return samples


def chopped(samples, sizes):
    blocks, start = [], 0
    while start < len(samples):
        size = sizes[len(blocks) % len(sizes)]
        blocks.append(samples[start : start + size])
        start += size
    return blocks


def starts(windows):
    return [window.start for window in windows]


def level_db(samples):
    return 10 * np.log10(np.mean(samples**2) + 1e-10)


@settings(max_examples=40)
@given(
    seconds=st.floats(0, 130),
    seed=st.integers(0, 1000),
    sizes=st.lists(st.integers(1_000, 2_000_000), min_size=1, max_size=5),
)
def test_windows_are_the_whole_audio_however_it_was_chopped(seconds, seed, sizes):
    samples = noise_with_pauses(seconds, seed)
    windows = list(split(chopped(samples, sizes)))
    assert [window.index for window in windows] == list(range(len(windows)))
    assert starts(windows) == np.cumsum([0, *(len(w.samples) for w in windows)])[:-1].tolist()
    assert all(0 < len(window.samples) <= LONGEST for window in windows)
    together = np.concatenate([np.zeros(0, np.float32), *(window.samples for window in windows)])
    np.testing.assert_array_equal(together, samples)
    assert starts(windows) == starts(split([samples]))


def test_empty_blocks_change_nothing():
    samples = noise_with_pauses(70, 3)
    empty = samples[:0]
    assert starts(split([empty, samples[:9], empty, samples[9:], empty])) == starts(split([samples]))
    assert list(split([])) == []
    assert list(split([empty])) == []


def test_thirty_seconds_are_one_window():
    assert [len(w.samples) for w in split([np.ones(LONGEST, np.float32)])] == [LONGEST]


@pytest.mark.parametrize("seconds", [30.1, 31, 37, 38, 45, 61])
def test_the_last_window_is_never_a_scrap(seconds):
    windows = list(split([noise_with_pauses(seconds, 1)]))
    assert windows[-1].duration_s >= 7.9


def test_a_cut_falls_into_the_pause():
    samples = np.random.default_rng(0).standard_normal(40 * SAMPLE_RATE_HZ).astype(np.float32) * 0.1
    samples[int(24.0 * SAMPLE_RATE_HZ) : int(24.6 * SAMPLE_RATE_HZ)] = 0.0
    _, second = split([samples])
    assert 24.05 < second.start_s < 24.55


def test_of_two_equal_pauses_the_later_is_taken():
    samples = np.random.default_rng(0).standard_normal(60 * SAMPLE_RATE_HZ).astype(np.float32) * 0.1
    for at_s in (20, 27):
        samples[at_s * SAMPLE_RATE_HZ :][: SAMPLE_RATE_HZ // 2] = 0.0
    assert 27 < list(split([samples]))[1].start_s < 27.5


def test_sound_without_any_pause_is_cut_at_the_end():
    tone = np.sin(np.arange(100 * SAMPLE_RATE_HZ) * 0.17).astype(np.float32)
    first, *_ = split([tone])
    assert first.duration_s > 29.5


def test_real_speech_is_cut_in_its_pauses():
    with open_audio(DATA / "printing.opus") as stream:
        samples = np.concatenate(list(stream.blocks()))
    windows = list(split([samples]))
    assert len(windows) == 3
    for window in windows[1:]:
        around = samples[window.start - 480 : window.start + 480]
        assert level_db(around) < level_db(samples) - 20


def test_a_window_does_not_keep_the_whole_file_alive():
    first, *_ = split([noise_with_pauses(100, 1)])
    assert first.samples.base is None
