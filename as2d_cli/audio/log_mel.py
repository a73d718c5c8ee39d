"""Mel features: Whisper's log-mel spectrogram (Radford et al. 2022, section 2.2), made fast."""

from __future__ import annotations

import io
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.types import FRAMES_PER_S, NOTHING_HEARD, SAMPLE_RATE_HZ, Features, FeatureSpec, Samples
from as2d_cli.system.atomic_files import read_sealed, write_sealed
from as2d_cli.system.paths import cache_root

_FFT = 400
_HOP = SAMPLE_RATE_HZ // FRAMES_PER_S
_LOWEST = -10.0
"""log10 of the power that stands for silence."""
_RANGE = 8.0
"""What is more than this (log10 units, 80 dB) below the window's maximum is raised to it."""


def log_mel(samples: Samples, spec: FeatureSpec) -> Features:
    """Return the log-mel features of one window, shape `spec.shape`.

    Frames behind the audio are 0.0, as in faster-whisper, not silence as in
    openai/whisper: with it Whisper makes fewer errors on short clips (docs/decisions/0005-padding.md).
    Raises ValueError if `samples` are longer than the spec: to drop audio is never right here.
    """
    if spec == NOTHING_HEARD:
        return np.zeros(spec.shape, np.float32)
    length = spec.n_frames * _HOP
    if len(samples) > length:
        raise ValueError(f"{len(samples)} samples do not fit {spec.n_frames} frames")
    n_heard = min(spec.n_frames, (len(samples) + spec.reach) // _HOP) if len(samples) else 0
    features = np.zeros(spec.shape, np.float32)
    if n_heard:
        heard = np.pad(samples, (0, length - len(samples))) if spec.reach else samples  # mirrored at its end
        log = _log_power(heard, n_heard, spec.n_mels)
        np.maximum(log, log.max() - _RANGE, out=log)
        features[:, :n_heard] = (log + 4.0) / 4.0
    return features


def heard_frames(features: Features) -> int:
    """Return how many frames hold audio: all but the padding of `log_mel`, columns of nothing but 0.0.

    (Audio's own last frames are 0.0 in every band only if they are silent and the loudest band has a power of
    just 10,000; the padding is no different from them then.)
    """
    heard = np.flatnonzero(features.any(axis=0))
    return int(heard[-1]) + 1 if len(heard) else 0


def _log_power(padded: Samples, n_frames: int, n_mels: int) -> Features:
    """Return log10 of the mel powers of the first `n_frames` frames, shape (n_mels, n_frames)."""
    centred = np.pad(padded, _FFT // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(centred, _FFT)[::_HOP][:n_frames]
    spectrum = np.fft.rfft(frames * _window(), axis=1)
    powers = (spectrum.real**2 + spectrum.imag**2).astype(np.float32, copy=False)
    mels: Features = mel_filters(n_mels) @ powers.T
    np.maximum(mels, np.float32(10.0**_LOWEST), out=mels)
    return np.log10(mels, out=mels)


@lru_cache(maxsize=1)
def _window() -> NDArray[np.float32]:
    """Return the periodic Hann window, as torch and Whisper have it; numpy's own is symmetric."""
    return np.hanning(_FFT + 1)[:-1].astype(np.float32)


@lru_cache(maxsize=4)
def mel_filters(n_mels: int) -> NDArray[np.float32]:
    """Return the Slaney mel filter bank, shape (n_mels, 201); kept on disk, since librosa imports slowly."""
    path = cache_root() / f"mel-{SAMPLE_RATE_HZ}-{_FFT}-{n_mels}.filters"
    filters = _kept(path, (n_mels, _FFT // 2 + 1))
    if filters is None:
        from librosa.filters import mel  # here: a second of imports that most runs never need

        filters = np.asarray(mel(sr=SAMPLE_RATE_HZ, n_fft=_FFT, n_mels=n_mels), np.float32)
        kept = io.BytesIO()
        np.save(kept, filters, allow_pickle=False)
        with suppress(OSError):  # a cache that cannot be written costs a second per run, no more
            path.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(path, kept.getvalue())  # damage would change texts
    return filters


def _kept(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    try:
        filters = np.load(io.BytesIO(read_sealed(path)), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return filters if filters.shape == shape and filters.dtype == np.float32 else None
