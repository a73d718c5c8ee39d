"""Whisper keeps the contracts, with small random weights: as target, drafter, and drafter of few words."""

import pytest

from as2d_cli.testing import DrafterContract, TargetContract
from as2d_whisper.convert import convert
from as2d_whisper.drafter import WhisperDrafter
from as2d_whisper.target import WhisperTarget


@pytest.fixture(scope="module")
def made(tmp_path_factory, tiny_whisper):
    """Make a converted model of random weights with these options; one of few words knows English only."""

    def make(**options):
        folder = tmp_path_factory.mktemp("tiny")
        (folder / "model").mkdir()
        languages = ("en",) if options else ("en", "zh", "de")
        tiny = tiny_whisper(n_heads=2, languages=languages, seed=2)
        tiny.write_safetensors(folder / "source", is_multilingual=not options)
        convert(folder / "source", folder / "model", options)
        return folder / "model"

    return make


@pytest.fixture(scope="module", params=[1, 2], ids=["1 thread", "2 threads"])
def target(request, made):
    return WhisperTarget(made(), 1, request.param)


@pytest.fixture(scope="module", params=[{}, {"vocabulary": 260}], ids=["whole", "cut"])
def drafter(request, made):
    return WhisperDrafter(made(**request.param), 1)


class TestWhisperTarget(TargetContract):
    seeds = range(1)
    test_every_window_fits = None  # its windows are shorter, for the sake of time


class TestWhisperDrafter(DrafterContract):
    seeds = range(1)
    test_every_window_fits = None  # its windows are shorter, for the sake of time
