"""The drafter: it may hear audio faster than it was spoken."""

import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_whisper.drafter import WhisperDrafter, sped_up


def test_sped_up_audio_has_its_frames_sooner_and_silence_after():
    frames = np.arange(1, 101, dtype=np.float32)[None].repeat(3, axis=0)
    faster = sped_up(frames, 1.25)
    assert faster.shape == frames.shape
    assert np.allclose(faster[:, :79], 1 + 1.25 * np.arange(79))
    assert not faster[:, 80:].any()
    assert sped_up(frames, 1.0) is frames


def test_padding_stays_padding():
    padded = np.zeros((2, 100), np.float32)
    padded[:, :50] = 1.0
    assert np.flatnonzero(sped_up(padded, 1.25).any(axis=0))[-1] <= 40


@pytest.mark.parametrize("speed", [0.5, 3])
def test_a_speed_at_which_nothing_is_understood_is_refused(tmp_path, speed):
    with pytest.raises(ModelError, match="speed"):
        WhisperDrafter(tmp_path, 1, speed)
