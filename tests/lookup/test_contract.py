"""The lookup drafter keeps the contract of drafters inside the target's process."""

import pytest

from as2d_cli.testing import InnerDrafterContract
from as2d_lookup.drafter import LookupDrafter


class TestLookupDrafter(InnerDrafterContract):
    @pytest.fixture
    def drafter(self):
        return LookupDrafter(self.vocabulary)
