"""The models that answer well, which are too large for CI: `pytest -m large tests/mnn_llm`."""

import numpy as np
import pytest

from as2d_cli.domain.types import Request, Window
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import DecodeSettings, ModelRef
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.models.registry import load_registry
from as2d_cli.models.weights import ensure
from as2d_mnn_llm.bpe import LlmTokenizer

pytestmark = pytest.mark.large
PASSAGE = (
    "The committee met on Tuesday in Oslo. It looked at the plan for the new bridge, which is to cost four "
    "million, less than the old one did. Mary Smith asked when the old bridge would be closed."
)
QUESTIONS = {
    "Where did the committee meet?": "Oslo",
    "Who asked about the old bridge?": "Mary Smith",
    "How much is the new bridge to cost?": "million",
    "Quote the first sentence.": "The committee met on Tuesday in Oslo.",
}


def model(name, threads):
    entry = load_registry().model(name)
    return ModelRef(entry, ensure(entry), threads)


def tasks():
    nothing = Window(0, 0, np.zeros(0, np.float32))
    requests = [Request(task="ask", question=one, passage=PASSAGE) for one in QUESTIONS]
    return [WindowTask(group, nothing, request) for group, request in enumerate(requests)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("drafter", ["qwen2.5-coder-0.5b", "smollm2-135m"])
def test_the_reader_answers_and_drafts_of_another_model_change_no_token(drafter):
    reader = model("qwen2.5-coder-1.5b", 2)
    with Engine(EngineSettings(reader, model(drafter, 1), DecodeSettings(draft_tokens=4))) as engine:
        plain = [outcome.result for outcome in engine.run(tasks(), drafted=False)]
        drafted = [outcome.result for outcome in engine.run(tasks())]
    for result, wanted in zip(plain, QUESTIONS.values(), strict=True):
        assert wanted in result.text
    assert [one.tokens for one in drafted] == [one.tokens for one in plain]
    assert sum(one.stats.accepted for one in drafted) > 0


def test_both_readers_have_one_vocabulary_and_cut_text_as_qwen_does():
    large, small = (
        LlmTokenizer.load(ensure(load_registry().model(f"qwen2.5-coder-{n}"))) for n in ("1.5b", "0.5b")
    )
    assert large.fingerprint == small.fingerprint
    assert large.encode("Hello world") == [9707, 1879]
    assert large.special("<|im_end|>") == 151645
