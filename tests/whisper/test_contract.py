"""Whisper keeps the contracts, with small random weights: as target and as drafter."""

import pytest

from as2d_cli.testing import DrafterContract, TargetContract
from as2d_whisper.convert import convert
from as2d_whisper.drafter import WhisperDrafter
from as2d_whisper.target import WhisperTarget


@pytest.fixture(scope="module")
def model(tmp_path_factory, tiny_whisper):
    """Folder of a converted model of random weights."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "model").mkdir()
    tiny_whisper(n_heads=2, languages=("en", "zh", "de"), seed=2).write_safetensors(folder / "source")
    convert(folder / "source", folder / "model", {})
    return folder / "model"


@pytest.fixture(scope="module", params=[1, 2], ids=["1 thread", "2 threads"])
def target(request, model):
    return WhisperTarget(model, 1, request.param)


@pytest.fixture(scope="module")
def drafter(model):
    return WhisperDrafter(model, 1)


class TestWhisperTarget(TargetContract):
    seeds = range(1)
    test_every_window_fits = None  # its windows are shorter, for the sake of time


class TestWhisperDrafter(DrafterContract):
    seeds = range(1)
    test_every_window_fits = None  # its windows are shorter, for the sake of time
