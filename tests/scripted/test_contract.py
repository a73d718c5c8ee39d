"""The scripted models keep the contracts: listening, reading, in other tokens, in the target's process."""

import pytest

from as2d_cli.testing import DrafterContract, InnerDrafterContract, TargetContract
from as2d_scripted import Script, ScriptedDrafter, ScriptedInnerDrafter, ScriptedTarget, ScriptedTokenizer

SCRIPT = Script(words=30)
BYTES = ScriptedTokenizer(words=False)


@pytest.fixture(params=[True, False], ids=["listens", "reads"])
def target(request):
    return ScriptedTarget(SCRIPT, listens=request.param)


@pytest.fixture(params=["alike", "other words", "other tokens", "reads"])
def drafter(request):
    options = {"other words": {"error_rate": 0.3}, "other tokens": {"tokenizer": BYTES}}
    return ScriptedDrafter(SCRIPT, listens=request.param != "reads", **options.get(request.param, {}))


class TestScriptedTarget(TargetContract):
    pass


class TestScriptedDrafter(DrafterContract):
    pass


class TestScriptedInnerDrafter(InnerDrafterContract):
    vocabulary = ScriptedTokenizer()
    end_id = vocabulary.size

    @pytest.fixture
    def drafter(self):
        return ScriptedInnerDrafter(ScriptedDrafter(SCRIPT, error_rate=0.2))
