"""The small real model that reads; fetched and converted at first use."""

from pathlib import Path

import pytest
import soundfile

from as2d_cli.models.registry import load_registry
from as2d_cli.models.weights import ensure

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="session")
def smollm_folder():
    return ensure(load_registry().model("smollm2-135m"))


@pytest.fixture(scope="session")
def speech():
    """Return the samples of a clip of the repository."""
    samples, _ = soundfile.read(DATA / "jfk.flac", dtype="float32")
    return samples
