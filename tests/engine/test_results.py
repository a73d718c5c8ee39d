"""What becomes of a window, where the target tells of it what cannot be."""

import json
import time
from math import inf, log, nan

import numpy as np
import pytest

from as2d_cli.decoding import finished_draft
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import Request, Step, Word
from as2d_cli.engine.results import Course, conclude, trace
from as2d_scripted import ScriptedTarget

TARGET = ScriptedTarget()


def concluded(word, language="en"):
    session = TARGET.open(np.zeros(TARGET.spec.features.shape, np.float32), Request())
    session.language = language
    session.words = lambda tokens, duration_s: (word,)
    return conclude(
        TARGET, session, Request(word_times=True), [Step((1,), 0, 0, 0, 1.0)], Course(1.0, 0.0, 0.0)
    )


@pytest.mark.parametrize("word", [Word(" so", nan, 1.0), Word(" so", 0.0, inf)])
def test_a_word_at_no_time_fails_its_window(word):
    with pytest.raises(DecodeError, match="the target told of ' so' at no time"):
        concluded(word)


def test_a_language_that_is_none_fails_its_window():
    with pytest.raises(DecodeError, match="the target told 5 for a language"):
        concluded(Word(" so", 0.0, 1.0), language=5)


def test_numbers_of_numpy_become_plain_ones_and_a_probability_that_is_none_is_left_out():
    (word,) = concluded(Word(" so", np.float32(0.5), np.int64(1), np.float32(nan), [np.int64(3)])).words
    assert word == Word(" so", 0.5, 1.0, None, (3,))
    assert json.dumps(word.tokens) == "[3]"


def test_moments_of_a_window_and_of_its_draft_are_by_one_clock(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)  # another clock, or one looked at a little later
    session = TARGET.open(np.zeros(TARGET.spec.features.shape, np.float32), Request())
    began = time.perf_counter()
    found = trace(session, finished_draft([1, 2], 10), [], began)
    assert began <= found.draft_began_s <= found.published_s[0] <= found.published_s[1] < time.perf_counter()


def test_a_word_is_as_probable_as_its_tokens_are_on_average():
    session = TARGET.open(np.zeros(TARGET.spec.features.shape, np.float32), Request())
    words = (Word(" so", 0.0, 0.5, tokens=(1, 2)), Word(" it", 0.5, 1.0, tokens=(1,)), Word(" is", 1.0, 1.0))
    session.words = lambda tokens, duration_s: words
    logprobs = (log(0.5), log(0.25), -1.0, log(0.125))
    step = Step((1, 2, 3, 1), 0, 0, 0, 1.0, logprobs=logprobs)
    result = conclude(TARGET, session, Request(word_times=True), [step], Course(1.0, 0.0, 0.0))
    assert [word.probability for word in result.words] == [pytest.approx(0.375), pytest.approx(0.125), None]
    assert [word.logprobs for word in result.words] == [logprobs[:2], logprobs[3:], ()]
    assert (result.logprobs, result.avg_logprob) == (logprobs, sum(logprobs) / 5)


@pytest.mark.parametrize("told", [1.5, -0.1, nan])
def test_a_probability_of_silence_that_is_none_fails_its_window(told):
    session = TARGET.open(np.zeros(TARGET.spec.features.shape, np.float32), Request())
    session.no_speech_prob = told
    with pytest.raises(DecodeError, match="for a probability"):
        conclude(TARGET, session, Request(), [], Course(1.0, 0.0, 0.0))
