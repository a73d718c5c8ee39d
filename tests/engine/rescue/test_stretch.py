"""Ways to hear a stretch of speech, and what counts as more than was written."""

import numpy as np
import pytest

from as2d_cli.domain.types import Span, Word
from as2d_cli.engine.rescue.stretch import Way, put_at, says_more, ways

BEHIND, BEFORE, WHOLE = Way(Span(1, 4), Span(0, 1)), Way(Span(0, 3), Span(3, 4)), Way(Span(0, 4), None)


def words(text):
    return [Word(f" {word}", index, index + 1) for index, word in enumerate(text.split())]


def test_it_is_cut_in_the_pause_behind_its_words_and_before_them():
    noise = np.random.default_rng(1).normal(0, 0.1, 5 * 16_000).astype(np.float32)
    noise[int(0.8 * 16_000) : int(1.1 * 16_000)] = 0
    noise[int(4.0 * 16_000) : int(4.4 * 16_000)] = 0
    behind, before, whole = ways(noise, 2)
    assert behind.heard == Span(pytest.approx(0.95, abs=0.15), 5.0)
    assert behind.kept == Span(0.0, behind.heard.start_s)
    assert before.heard == Span(0.0, pytest.approx(4.2, abs=0.2))
    assert before.kept == Span(before.heard.end_s, 5.0)
    assert [whole] == list(ways(noise, 0)) == list(ways(noise, 3)) == [Way(Span(0.0, 5.0), None)]


@pytest.mark.parametrize(
    ("new", "kept", "way", "is_more"),
    [
        ("and so on", "regard.", BEHIND, True),
        ("Regard! And so on", "regard.", BEHIND, False),
        ("and so on, the invention", "The invention", BEFORE, False),
        ("the invention and so on, that is all", "The invention", BEFORE, True),
        ("and a box of books", "a", BEHIND, False),
        ("there is a box of books", "a", BEHIND, False),
        ("so is this box of books", "on", BEHIND, True),
        ("und recht memorable Lebensbeschreibung", "rechtmemorable Lebensbeschreibung", BEHIND, False),
        ("Lebensbeschreibung, memorable", "rechtmemorable Lebensbeschreibung", BEHIND, False),
        ("oh", "regard.", BEHIND, False),
        ("regard. and so on", "regard.", WHOLE, True),
        ("oh regard.", "regard.", WHOLE, False),
        ("and so on", "", WHOLE, True),
        ("", "", WHOLE, False),
    ],
)
def test_more_is_said_by_two_words_that_are_not_those_beside_them(new, kept, way, is_more):
    assert says_more(words(new), words(kept), way) is is_more


def test_words_are_drawn_together_in_their_order():
    placed = put_at([Word(" a", 1.0, 3.0), Word(" b", 4.0, 5.0)], Span(10.0, 11.0))
    assert [(word.start_s, word.end_s) for word in placed] == [(10.0, 10.5), (10.75, 11.0)]
