"""Audio language models keep the contracts, on stand-ins of random weights."""

import shutil
from pathlib import Path

import pytest

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.domain.types import Request
from as2d_cli.testing import Case, DrafterContract, TargetContract
from as2d_mnn_llm.audio.drafter import AudioDrafter
from as2d_mnn_llm.audio.target import AudioTarget
from as2d_mnn_llm.checkpoints.qwen3_asr import convert

STAND_INS = Path(__file__).parents[2] / "data" / "stand_ins"


@pytest.fixture(scope="module", params=["qwen2_audio", "qwen2_5_omni", "qwen3_asr"])
def folder(request, tmp_path_factory):
    """Copy a stand-in: what is learned of safe row counts is kept beside it. Qwen3-ASR's is converted."""
    folder = tmp_path_factory.mktemp("stand_ins") / request.param
    if request.param == "qwen3_asr":
        folder.mkdir()
        convert(STAND_INS / request.param, folder, 8)
    else:
        shutil.copytree(STAND_INS / request.param, folder)
    return folder


@pytest.fixture(scope="module")
def target(folder):
    return AudioTarget(folder, 1)


@pytest.fixture(scope="module")
def drafter(folder):
    return AudioDrafter(folder, 1)


class Speech:
    """Two windows of a second or two, in two languages: random weights hardly listen."""

    limit = 24
    seeds = range(1)

    @pytest.fixture(autouse=True)
    def _speech(self, speech):
        self.speech = speech

    def windows(self, model):
        spec = model.spec.features
        return [
            Case(log_mel(self.speech[:20000], spec), Request(language="fr")),
            Case(log_mel(self.speech[20000:60000], spec), Request()),
        ]


class TestAudioTarget(Speech, TargetContract):
    pass


class TestAudioDrafter(Speech, DrafterContract):
    pass
