"""A model that reads keeps the contracts."""

import pytest

from as2d_cli.testing import DrafterContract, TargetContract
from as2d_mnn_llm.reader import ReadingDrafter, ReadingTarget


@pytest.fixture(scope="module")
def target(smollm_folder):
    return ReadingTarget(smollm_folder, 2, "low")


@pytest.fixture(scope="module")
def drafter(smollm_folder):
    return ReadingDrafter(smollm_folder, 2, "low")


class TestReadingTarget(TargetContract):
    limit = 12
    room = 64
    seeds = range(1)


class TestReadingDrafter(DrafterContract):
    limit = 12
    seeds = range(1)
