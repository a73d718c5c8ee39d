"""What of a transcript a question is put to, and what an answer rests on."""

import pytest

from as2d_cli.ask.retrieval import GAP, choose, is_found, rests_on, terms
from as2d_cli.domain.types import Segment, Span

SAID = [
    "Welcome to the meeting.",
    "First we look at the budget for the bridge.",
    "It costs four million.",
    "Then there is the school.",
    "The roof of the school leaks.",
    "The caretaker has asked for a plumber.",
    "Finally the summer party.",
    "It will be on a Saturday in June.",
    "Bring your own plates.",
    "Goodbye.",
]


def segments(texts=SAID):
    return [Segment(10.0 * at, 10.0 * at + 5, text) for at, text in enumerate(texts)]


def words(text):
    return len(text.split())


def chosen(question, room):
    return [SAID.index(one.text) for one in choose(segments(), question, room, words).segments]


def test_a_transcript_that_fits_is_given_whole():
    passage = choose(segments(), "What?", 100, words)
    assert passage.is_whole
    assert passage.text == " ".join(SAID)


def test_one_that_does_not_fit_is_cut_to_what_shares_rare_words_with_the_question_and_its_neighbours():
    passage = choose(segments(), "What does the bridge cost?", 16, words)
    assert not passage.is_whole
    assert [one.text for one in passage.segments] == SAID[1:3]
    assert passage.text == f"{GAP}{SAID[1]} {SAID[2]}{GAP}"


def test_what_was_chosen_stays_in_the_order_of_the_recording():
    for question in ("Who asked for a plumber, and when is the party?", "school", ""):
        places = chosen(question, 30)
        assert places == sorted(places)


def test_a_question_that_shares_nothing_gets_the_beginning():
    assert chosen("Qui?", 15) == [0, 1]


def test_at_least_one_segment_is_given_however_small_the_room():
    assert chosen("the party", 1) == [6]


def test_words_count_as_the_same_if_they_begin_alike_and_scripts_without_spaces_by_pairs():
    assert terms("operates") & terms("operating") & terms("Operate!")
    assert terms("東京タワー") & terms("東京は")
    assert not terms("東京") & terms("京都")


def test_an_answer_names_where_it_comes_from():
    passage = choose(segments(), "What leaks?", 100, words)
    assert rests_on(passage, "What leaks?", "The roof") == (Span(40.0, 45.0),)


def test_touching_segments_are_one_place_and_there_are_three_places_at_most():
    one = [Segment(float(at), at + 1.0, f"apples and pears {at % 2}") for at in range(6)]
    assert rests_on(choose(one, "?", 100, words), "?", "apples and pears 0 1") == (Span(0.0, 3.0),)


def test_an_answer_in_other_words_rests_on_what_the_question_is_about_or_else_on_everything():
    passage = choose(segments(), "?", 100, words)
    assert rests_on(passage, "What about the plumber?", "Oui.") == (Span(50.0, 55.0),)
    assert rests_on(passage, "?", "Oui.") == (Span(0.0, 95.0),)


@pytest.mark.parametrize(
    "text", ["Not in the recording.", '"not in the recording"', "Not in the recording, no."]
)
def test_an_answer_that_there_is_none_rests_on_nothing(text):
    assert not is_found(text)
    assert rests_on(choose(segments(), "Who?", 100, words), "Who?", text) == ()


def test_nothing_said_is_an_empty_passage():
    passage = choose([], "What?", 10, words)
    assert (passage.text, passage.segments, passage.is_whole) == ("", (), True)
    assert rests_on(passage, "What?", "anything") == ()
