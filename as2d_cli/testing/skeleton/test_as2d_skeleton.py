"""The drafter keeps the contract of drafters; run with `python -m pytest`."""

import pytest
from as2d_skeleton import SkeletonDrafter

from as2d_cli.testing import DrafterContract


@pytest.fixture(scope="module")
def drafter() -> SkeletonDrafter:
    """Load the drafter."""
    return SkeletonDrafter()


class TestSkeletonDrafter(DrafterContract):
    """All checks of the contract."""
