from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.domain.types import SAMPLE_RATE_HZ, Span, Window, WindowResult, Word
from as2d_cli.transcripts.segments import Segmenter, SegmentLimits, join_texts
from as2d_cli.transcripts.speakers import segment


def window(start_s=0.0, duration_s=30.0, index=0):
    samples = np.zeros(round(duration_s * SAMPLE_RATE_HZ), np.float32)
    return Window(index, round(start_s * SAMPLE_RATE_HZ), samples)


def spoken(text, start_s=0.0, word_s=0.3, gap_s=0.1):
    """Return `text`'s words at an even pace, each with its leading space."""
    words = []
    for number, word in enumerate(text.split(" ")):
        begin = start_s + number * (word_s + gap_s)
        words.append(Word(" " + word, begin, begin + word_s))
    return tuple(words)


def result(words=(), text=None):
    return WindowResult(text if text is not None else "".join(w.text for w in words), (), "en", tuple(words))


def texts(words, **limits):
    return [s.text for s in segment([(window(), result(words))], 30.0, SegmentLimits(**limits))]


def test_segments_end_with_sentences():
    assert texts(spoken("It works. Does it? Yes!")) == ["It works.", "Does it?", "Yes!"]


@pytest.mark.parametrize(
    "text",
    ["I met Dr. Smith today", "It costs 3.5 dollars", "See J. Smith", "use e.g. this one", "so ... and then"],
)
def test_a_full_stop_that_ends_no_sentence_ends_no_segment(text):
    assert texts(spoken(text)) == [text]


def test_a_number_split_into_words_stays_whole():
    words = (Word(" It", 0, 1), Word(" is", 1, 2), Word(" 3.", 2, 3), Word("14", 3, 4))
    assert texts(words) == ["It is 3.14"]


def test_a_closing_quote_belongs_to_its_sentence():
    assert texts(spoken('He said "stop." Then he left.')) == ['He said "stop."', "Then he left."]


def test_scripts_without_spaces_are_split_at_their_own_marks():
    words = tuple(Word(c, i * 0.2, i * 0.2 + 0.2) for i, c in enumerate("今日は。いい天気。"))
    assert texts(words) == ["今日は。", "いい天気。"]


def test_a_long_pause_ends_a_segment():
    words = spoken("one two") + spoken("three four", start_s=5.0)
    assert texts(words) == ["one two", "three four"]
    assert texts(words, pause_s=10.0) == ["one two three four"]


@pytest.mark.parametrize(
    ("said", "segments"),
    [
        ((("we are gathered", 0), ("to", 2.0), ("review this with you", 4.0)), 2),
        ((("a", 0), ("gold ring pleases", 2.5)), 1),
        ((("a", 0), ("gold ring pleases", 4.0)), 2),
        ((("One.", 0), ("From fairest creatures", 2.0)), 2),
        ((("we are gathered in peace", 0), ("to review this", 3.0)), 2),
    ],
)
def test_a_pause_within_a_sentence_leaves_no_word_alone(said, segments):
    words = [word for text, start_s in said for word in spoken(text, start_s)]
    found = texts(words)
    assert len(found) == segments
    assert " ".join(found) == " ".join(text for text, _ in said)
    assert "to" not in found


def test_a_pause_leaves_no_word_alone_before_a_sentence_that_is_long_by_itself():
    words = (
        Word(" When", 0.0, 0.3),
        *spoken("you have seen the film, you may think of a map and of a house", 1.2),
    )
    assert words[-1].end_s - words[1].start_s < 6.0 < words[-1].end_s
    assert texts(words, max_s=6.0) == [
        "When you have seen the film,",
        "you may think of a map and of a house",
    ]


def test_a_long_sentence_is_split_after_a_comma():
    text = "a b c d e f, g h i j k l m n o p"
    assert texts(spoken(text), max_words=10) == ["a b c d e f,", "g h i j k l m n o p"]


def test_a_long_sentence_without_commas_is_split_at_its_longest_pause():
    words = spoken("a b c d e f g") + spoken("h i j k l m n o", start_s=3.1)
    assert texts(words, max_words=10) == ["a b c d e f g", "h i j k l m n o"]


def test_no_segment_is_split_inside_a_written_word():
    words = tuple(
        Word(t, i * 1.0, i + 1.0) for i, t in enumerate([" one", " un", "believ", "able", " story"])
    )
    assert texts(words, max_words=3) == ["one", "unbelievable", "story"]


def test_times_are_those_of_the_file():
    parts = [
        (window(0, 20), result(spoken("One."))),
        (window(20, 10, 1), result(spoken("Two.", start_s=1.0))),
    ]
    first, second = segment(parts, 30.0)
    assert (first.start_s, first.end_s) == (0.0, 0.3)
    assert (second.start_s, second.end_s) == (21.0, 21.3)
    assert second.words[0].start_s == 21.0


def test_a_sentence_may_run_over_a_seam_of_windows():
    parts = [
        (window(0, 20), result(spoken("it goes", 19.2))),
        (window(20, 10, 1), result([Word("on", 0, 1)])),
    ]
    assert [s.text for s in segment(parts, 30.0)] == ["it goes on"]


def test_a_window_without_word_times_is_one_segment():
    parts = [
        (window(0, 20), result(text=" Hello there. How are you?")),
        (window(20, 5, 1), result(text=" ")),
        (window(25, 5, 2), result(spoken("Fine."))),
    ]
    segments = segment(parts, 30.0)
    assert [s.text for s in segments] == ["Hello there. How are you?", "Fine."]
    assert (segments[0].start_s, segments[0].end_s) == (0.0, 20.0)


def test_nothing_said_gives_no_segments():
    assert segment([(window(), result())], 30.0) == ()
    assert segment([], 0.0) == ()


a_word = st.builds(
    Word,
    st.sampled_from([" a", " b.", "c", " d,", "。", "語", ' "e!"', " Mr.", ""]),
    st.floats(-5, 40),
    st.floats(-5, 40),
    tokens=st.lists(st.integers(0, 9), max_size=3).map(tuple),
)


@given(
    windows=st.lists(st.lists(a_word, max_size=60), max_size=4),
    max_words=st.integers(1, 12),
    max_s=st.floats(0.1, 20),
)
def test_no_word_is_lost_or_doubled_and_times_never_go_back(windows, max_words, max_s):
    parts = [(window(30 * i, 30, i), result(words)) for i, words in enumerate(windows)]
    duration_s = max(0, 30 * len(windows) - 7.5)
    segments = segment(parts, duration_s, SegmentLimits(max_words, max_s))

    spoken_texts = [word.text.strip() for words in windows for word in words]
    assert [word.text.strip() for s in segments for word in s.words] == spoken_texts
    tokens = [token for words in windows for word in words for token in word.tokens]
    assert [token for s in segments for token in s.tokens] == tokens
    times = [time for s in segments for word in s.words for time in (word.start_s, word.end_s)]
    assert all(earlier <= later for earlier, later in pairwise([0.0, *times, duration_s]))
    for s in segments:
        assert (s.start_s, s.end_s) == (s.words[0].start_s, s.words[-1].end_s)
        assert s.text == "".join(word.text for word in s.words).strip()
        assert len(s.words) <= max_words
        assert len(s.words) == 1 or s.end_s - s.start_s <= max_s


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([" And so,", " my fellow"], "And so, my fellow"),
        (["", "  ", " one", ""], "one"),
        (["今日は、", "いい天気"], "今日は、いい天気"),
        (["안녕", "하세요"], "안녕 하세요"),
        (["これは", "GPT です"], "これは GPT です"),
        ([], ""),
    ],
)
def test_texts_are_joined_as_their_script_is_written(parts, whole):
    assert join_texts(parts) == whole


@given(
    st.lists(
        st.tuples(
            st.sampled_from([" a", " b,", " c.", " D", " e!", " Dr."]),
            st.floats(0, 4),
            st.floats(0.05, 2),
            st.booleans(),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_segments_do_not_depend_on_how_the_words_are_spread_over_windows(pieces):
    words, starts, now_s = [], [], 0.0
    for text, gap_s, word_s, begins_window in pieces:
        words.append(Word(text, now_s + gap_s, now_s + gap_s + word_s))
        starts.append(begins_window)
        now_s += gap_s + word_s
    limits = SegmentLimits(max_words=6, max_s=9.0)
    at_once = segment([(Span(0.0, now_s), result(words))], now_s, limits)
    windows = [[words[0]]]
    for word, begins_window in zip(words[1:], starts[1:], strict=True):
        if begins_window:
            windows.append([])
        windows[-1].append(word)
    segmenter, streamed = Segmenter(limits=limits), []
    for group in windows:
        streamed += segmenter.add(Span(0.0, now_s), result(group))
    assert (*streamed, *segmenter.finish()) == at_once


def test_a_sentence_is_complete_as_soon_as_the_next_one_cannot_be_part_of_it():
    segmenter = Segmenter()
    first = list(segmenter.add(Span(0, 30), result(spoken("It works well here. And then it"))))
    assert [one.text for one in first] == ["It works well here."]
    second = list(segmenter.add(Span(2.8, 30), result(spoken("stops. Does it really?"))))
    assert [one.text for one in second] == ["And then it stops."]
    assert [one.text for one in segmenter.finish()] == ["Does it really?"]
    assert list(segmenter.finish()) == []
