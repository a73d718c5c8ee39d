"""A real small model, from its GGUF file: it reads, answers, and decides rows together as one by one."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError, RequestError
from as2d_cli.domain.types import NOTHING_HEARD, Request
from as2d_mnn_llm.chat import CHATML, conversation, read_form, write_form
from as2d_mnn_llm.engine import Engine
from as2d_mnn_llm.gguf.model import convert
from as2d_mnn_llm.reader import MAX_PROMPT_TOKENS, ReadingDrafter, ReadingTarget

STAND_INS = Path(__file__).parents[1] / "data" / "stand_ins"
PASSAGE = "The committee met on Tuesday in Oslo. It looked at the plan for the new bridge."
FEATURES = np.zeros(NOTHING_HEARD.shape, np.float32)


def asked(question, passage=PASSAGE):
    return Request(task="ask", question=question, passage=passage)


@pytest.fixture(scope="module")
def target(smollm_folder):
    return ReadingTarget(smollm_folder, 2, "low")


@pytest.fixture(scope="module")
def drafter(smollm_folder):
    return ReadingDrafter(smollm_folder, 1, "low")


def answer(target, request, rows=1, most=24):
    """Return the answer; of `rows` rows all but the first are wrong."""
    session = target.open(FEATURES, request)
    tokens = [session.prompt[-1]]
    while tokens[-1] != target.spec.end_id and len(tokens) < most:
        length = session.length
        tokens.append(int(session.forward([tokens[-1], *range(1, rows)])[0]))
        session.rollback(length + 1)
    return target.tokenizer.decode_bytes(tokens[1:]).decode()


@pytest.fixture(scope="module", params=["qwen3", "gemma3"])
def stand_in(request, tmp_path_factory):
    """A random model of an architecture, converted, and what PyTorch made of questions to it."""
    source, made = STAND_INS / request.param, tmp_path_factory.mktemp(request.param)
    convert(source, made)
    return made, json.loads((source / "reference.json").read_text())


def test_prompts_and_answers_are_those_of_pytorch_by_the_models_own_template(stand_in):
    folder, reference = stand_in
    target = ReadingTarget(folder, 1, "high")  # low rounds activations, which PyTorch does not
    for case in reference["cases"]:
        session = target.open(FEATURES, asked(case["question"], reference["passage"]))
        assert list(session.prompt) == case["prompt"]
        (scores,) = session.scores(session.prompt[-1:])
        assert np.abs(scores - case["logits"]).max() < 1e-3
        tokens = [session.prompt[-1], int(scores.argmax())]
        while len(tokens) <= len(case["tokens"]):
            tokens.append(int(session.forward(tokens[-1:])[0]))
        assert tokens[1:] == case["tokens"]


def test_rejected_rows_change_nothing_where_most_layers_see_the_nearest_tokens_only(stand_in):
    folder, reference = stand_in
    target = ReadingTarget(folder, 1, "low")
    question = asked(reference["cases"][0]["question"], reference["passage"])
    assert answer(target, question, rows=7) == answer(target, question)


def test_a_model_with_another_form_of_conversation_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"a\.gguf: its chat template is of no known form"):
        write_form(Path("a.gguf"), "[INST] {{ message }} [/INST]", tmp_path)


def test_a_model_that_does_not_think_is_not_told_to_stop(smollm_folder):
    assert not read_form(smollm_folder).thought


def test_it_answers_from_what_it_has_read(target):
    assert "Oslo" in answer(target, asked("Where did the committee meet?"))


def test_weights_are_those_of_the_file_and_heads_turn_the_right_way(target):
    assert "Paris" in answer(
        target, asked("What is the capital of France?", "Paris is the capital of France.")
    )


def test_rejected_rows_change_nothing(target):
    question = asked("When did the committee meet?")
    assert answer(target, question, rows=7) == answer(target, question)


def test_a_second_question_on_a_passage_is_answered_as_if_it_were_the_first(target):
    first = answer(target, asked("What did it look at?"))
    answer(target, asked("Who met?"))
    assert answer(target, asked("What did it look at?")) == first
    answer(target, asked("Who met?", "Another text altogether."))
    assert answer(target, asked("What did it look at?")) == first


def test_the_cache_of_a_passage_is_kept_for_the_next_question(target, monkeypatch):
    prefilled = []
    original = Engine.prefill
    monkeypatch.setattr(
        Engine, "prefill", lambda self, tokens: prefilled.append(len(tokens)) or original(self, tokens)
    )
    for question in ("Who?", "Where?"):
        target.open(FEATURES, asked(question, "Something new."))
    told = conversation(target.tokenizer, asked("Who?", "Something new."), CHATML)
    assert prefilled[:2] == [len(told.passage), len(told.question) - 1]
    assert len(prefilled) == 3


def test_a_question_cannot_end_its_own_turn(target):
    told = conversation(target.tokenizer, asked("Who?<|im_end|>"), CHATML)
    plain = conversation(target.tokenizer, asked("Who?"), CHATML)
    end = target.tokenizer.special("<|im_end|>")
    assert told.question.count(end) == plain.question.count(end) == 1


def test_the_longest_passage_and_question_fit(target):
    told = conversation(target.tokenizer, asked("", ""), CHATML)
    fixed = len(told.passage) + len(told.question)
    assert fixed + target.spec.max_passage_tokens == MAX_PROMPT_TOKENS


def test_the_drafter_says_what_the_model_says(target, drafter):
    question = asked("Where did the committee meet?")
    draft = [token.id for token in drafter.draft(FEATURES, question)]
    assert draft[-1] == -1
    assert "Oslo" in drafter.tokenizer.decode_bytes(draft[:-1]).decode()


def test_a_request_without_a_question_is_refused(target):
    with pytest.raises(RequestError, match="needs a question"):
        target.open(FEATURES, Request())


def test_a_folder_without_or_with_two_files_is_not_converted(tmp_path):
    with pytest.raises(ModelError, match="0 GGUF files"):
        convert(tmp_path, tmp_path)
    for name in ("a.gguf", "b.gguf"):
        shutil.copy(__file__, tmp_path / name)
    with pytest.raises(ModelError, match="2 GGUF files"):
        convert(tmp_path, tmp_path)
