"""Texts of several decodings become one, with what is known of its tokens."""

import pytest

from as2d_cli.domain.types import Span, WindowResult, Word
from as2d_cli.engine.rescue.texts import joined, replaced
from as2d_scripted import ScriptedTarget

TARGET = ScriptedTarget()
END = TARGET.spec.end_id


def said(text, logprob, *, start_s=0.0):
    """Return a text of one word that ends, with this log-probability of each token."""
    tokens = tuple(TARGET.tokenizer.encode(text))
    own = (logprob,) * len(tokens)
    words = (Word(text, start_s, start_s + 1, tokens=tokens, logprobs=own),)
    return WindowResult(text, (*tokens, END), "en", words, logprobs=(*own, logprob - 1))


def test_tokens_keep_their_log_probabilities_and_the_last_end_counts():
    one, other = said(" one", -0.1), said(" two", -0.2)
    both = joined(TARGET, [(0.0, one), (5.0, other)], one)
    assert both.text == " one two"
    assert len(both.logprobs) == len(both.tokens)
    assert set(both.logprobs[:-1]) == {-0.1, -0.2}
    assert both.logprobs[-1] == pytest.approx(-1.1), "the whole window's end"


def test_words_that_stay_keep_theirs_beside_new_ones():
    whole = joined(TARGET, [(0.0, said(" one", -0.1)), (8.0, said(" three", -0.3))], said("", -0.5))
    result = replaced(TARGET, whole, Span(2.0, 7.0), said(" two", -0.2))
    assert result.text == " one two three"
    assert len(result.logprobs) == len(result.tokens)
    assert [word.logprobs[0] for word in result.words] == [-0.1, -0.2, -0.3]


def test_where_a_part_tells_none_nothing_is_known():
    silent = WindowResult(" two", (*TARGET.tokenizer.encode(" two"), END), "en")
    both = joined(TARGET, [(0.0, said(" one", -0.1)), (5.0, silent)], said("", -0.5))
    assert both.logprobs == ()
    assert both.avg_logprob is None
