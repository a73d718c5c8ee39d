"""The real default models, and the clips of the repository as features."""

from pathlib import Path

import numpy as np
import pytest

from as2d_cli.audio import open_audio
from as2d_cli.features import log_mel
from as2d_cli.registry import load_registry
from as2d_cli.types import SAMPLE_RATE_HZ, WINDOW_S
from as2d_cli.weights import ensure
from as2d_whisper.drafter import WhisperDrafter
from as2d_whisper.target import WhisperTarget

DATA = Path(__file__).parent.parent / "data"


def model_folder(name):
    """Fetch and convert at first use; from then on it comes out of the cache."""
    return ensure(load_registry().model(name))


@pytest.fixture(scope="session")
def base_folder():
    return model_folder("whisper-base")


@pytest.fixture(scope="session")
def tiny_en_folder():
    return model_folder("whisper-tiny.en")


class PatientTarget(WhisperTarget):
    """Encodes every window once only: these tests open the same one again and again."""

    def __init__(self, folder):
        super().__init__(folder, threads=1)
        encoded, encode = {}, self._model.encode

        def remember(features):
            key = features.tobytes()
            if key not in encoded:
                encoded[key] = encode(features)
            return encoded[key]

        self._model.encode = remember


@pytest.fixture(scope="session")
def base(base_folder):
    return PatientTarget(base_folder)


@pytest.fixture(scope="session")
def tiny_en(tiny_en_folder):
    return PatientTarget(tiny_en_folder)


@pytest.fixture(scope="session")
def drafter(tiny_en_folder):
    return WhisperDrafter(tiny_en_folder, threads=1)


@pytest.fixture(scope="session")
def clip():
    """Return the samples of a clip of the repository, at most one window of them."""

    def load(name):
        with open_audio(DATA / name) as audio:
            samples = np.concatenate(list(audio.blocks()))
        return samples[: int(WINDOW_S * SAMPLE_RATE_HZ)]

    return load


@pytest.fixture(scope="session")
def features(clip):
    """Return the features of a clip for a model's front end."""

    def extract(name, spec):
        return log_mel(clip(name), spec)

    return extract
