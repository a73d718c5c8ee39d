"""Contracts of plugins as tests: subclass one in a test file, feed it by a pytest fixture, run pytest.

    import pytest
    from as2d_cli.testing import DrafterContract

    @pytest.fixture(scope="module")
    def drafter():
        return MyDrafter()

    class TestMyDrafter(DrafterContract):
        pass

A `TargetContract` takes a fixture `target`, an `InnerDrafterContract` one called `drafter`, too. Checks are
plain methods and raise `AssertionError` with what was expected of what, so they also run without pytest.
Contracts work with made-up windows; a model that only makes sense of real ones overrides `windows`.

It may import `audio`, `decoding` and everything below them.
"""

from as2d_cli.decoding.byte_tokens import ByteTokenizer
from as2d_cli.testing.drafters import DrafterContract
from as2d_cli.testing.inner import InnerDrafterContract
from as2d_cli.testing.session import ScriptedSession
from as2d_cli.testing.targets import TargetContract
from as2d_cli.testing.windows import Case, features_of

__all__ = [
    "ByteTokenizer",
    "Case",
    "DrafterContract",
    "InnerDrafterContract",
    "ScriptedSession",
    "TargetContract",
    "features_of",
]
