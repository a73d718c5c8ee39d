"""A model that reads keeps the contracts, also where most of its layers see the nearest tokens only."""

from pathlib import Path

import numpy as np
import pytest

from as2d_cli.domain.types import NOTHING_HEARD, Request
from as2d_cli.testing import Case, DrafterContract, TargetContract
from as2d_mnn_llm.gguf.model import convert
from as2d_mnn_llm.reader import ReadingDrafter, ReadingTarget

GEMMA = Path(__file__).parents[1] / "data" / "stand_ins" / "gemma3"


@pytest.fixture(scope="module", params=["smollm", "gemma3"])
def folder(request, smollm_folder, tmp_path_factory):
    if request.param == "smollm":
        return smollm_folder
    made = tmp_path_factory.mktemp("gemma3")
    convert(GEMMA, made)
    return made


@pytest.fixture(scope="module")
def target(folder):
    return ReadingTarget(folder, 2, "low")


@pytest.fixture(scope="module")
def drafter(folder):
    return ReadingDrafter(folder, 2, "low")


class TestReadingTarget(TargetContract):
    limit = 12
    room = 64
    seeds = range(1)

    def windows(self, target):
        nothing = np.zeros(NOTHING_HEARD.shape, np.float32)
        texts = [
            ("Where did they meet?", "They met in Oslo."),
            ("When?", "It was on a Tuesday in May, or June."),
        ]
        return [Case(nothing, Request("ask", question=asked, passage=text)) for asked, text in texts]


class TestReadingDrafter(DrafterContract):
    limit = 12
    seeds = range(1)
