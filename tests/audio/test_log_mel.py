import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

import as2d_cli
from as2d_cli.audio.log_mel import heard_frames, log_mel, mel_filters
from as2d_cli.domain.types import FeatureSpec

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path))
    mel_filters.cache_clear()
    yield tmp_path
    mel_filters.cache_clear()


@pytest.fixture(scope="module")
def jfk():
    return soundfile.read(DATA / "jfk.flac", dtype="float32")[0]


@pytest.mark.parametrize("n_mels", [80, 128])
def test_features_equal_those_of_faster_whisper(jfk, n_mels):
    reference = np.load(DATA / "jfk-log-mel.npz")[f"every_50th_frame_{n_mels}"]
    got = log_mel(jfk, FeatureSpec(n_mels=n_mels))
    assert got.shape == (n_mels, 3000)
    assert got.dtype == np.float32
    heard = len(jfk) // 160 + 1  # faster-whisper pads the audio by one frame, then the features by 0.0
    np.testing.assert_allclose(got[:, :heard:50], reference[:, : -(-heard // 50)], atol=1e-5)
    assert not got[:, heard:].any()


def test_a_full_window_has_no_padding():
    samples = np.random.default_rng(0).standard_normal(480_000).astype(np.float32)
    assert log_mel(samples, FeatureSpec())[:, -1].any()


def test_silence_is_the_same_everywhere():
    got = log_mel(np.zeros(32_000, np.float32), FeatureSpec(n_frames=200))
    np.testing.assert_allclose(got, np.full((80, 200), -1.5), atol=1e-6)


def test_no_audio_is_all_padding():
    assert not log_mel(np.zeros(0, np.float32), FeatureSpec(n_frames=200)).any()


@pytest.mark.parametrize("n_samples", [0, 1, 159, 160, 16_000, 31_999, 32_000])
def test_the_frames_that_hold_audio_can_be_told_from_padding(n_samples):
    noise = np.random.default_rng(0).normal(0, 0.1, n_samples).astype(np.float32)
    expected = min(200, n_samples // 160 + 1) if n_samples else 0
    assert heard_frames(log_mel(noise, FeatureSpec(n_frames=200))) == expected


def test_silence_within_audio_is_heard_to_its_end():
    samples = np.zeros(16_000, np.float32)
    samples[:800] = np.random.default_rng(0).normal(0, 0.1, 800)
    assert heard_frames(log_mel(samples, FeatureSpec(n_frames=200))) == 101


def test_audio_that_does_not_fit_is_refused_and_not_cut():
    with pytest.raises(ValueError, match="161 samples do not fit 1 frames"):
        log_mel(np.zeros(161, np.float32), FeatureSpec(n_frames=1))


def test_filters_are_kept_and_a_broken_copy_is_made_anew(cache, jfk):
    expected = log_mel(jfk, FeatureSpec())
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    halved = whole[: len(whole) // 2] + bytes(len(whole) // 2)  # numbers that would change the text
    for content in (b"", b"garbage", whole[:-100], halved):
        kept.write_bytes(content)
        mel_filters.cache_clear()
        np.testing.assert_array_equal(log_mel(jfk, FeatureSpec()), expected)
        assert [path.name for path in cache.iterdir()] == [kept.name]
        assert kept.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch, jfk):
    (tmp_path / "file").touch()
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert log_mel(jfk, FeatureSpec()).shape == (80, 3000)


def test_kept_filters_spare_the_import_of_librosa(cache):
    mel_filters(80)
    code = (
        "import sys, numpy as np; from as2d_cli.audio.log_mel import log_mel; "
        "from as2d_cli.domain.types import FeatureSpec; "
        "log_mel(np.zeros(9, np.float32), FeatureSpec()); sys.exit('librosa' in sys.modules)"
    )
    root = str(Path(as2d_cli.__file__).parents[1])
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
