"""What is said on several channels, put together by time."""

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.domain.types import Span, WindowResult, Word
from as2d_cli.transcripts.speakers import SpeakerSegmenter, segment, turns


def said(*texts_s):
    """Return a result with sentences of one word, each of a second: (text, start within the window)."""
    words = tuple(Word(f" {text}.", at_s, at_s + 1) for text, at_s in texts_s)
    return WindowResult("".join(word.text for word in words), (), "en", words)


def test_speakers_alternate_by_the_times_of_what_they_say():
    parts = [
        (Span(0, 20, 1), said(("Well", 1), ("Good", 9))),
        (Span(0, 25, 2), said(("Yes", 4), ("And", 12))),
        (Span(20, 30, 1), said(("Why", 2))),
    ]
    segments = segment(parts, 30.0)
    assert [(one.speaker, one.text, one.start_s) for one in segments] == [
        ("Channel 1", "Well.", 1),
        ("Channel 2", "Yes.", 4),
        ("Channel 1", "Good.", 9),
        ("Channel 2", "And.", 12),
        ("Channel 1", "Why.", 22),
    ]
    assert list(turns(segments)) == [
        *("Channel 1: Well.", "Channel 2: Yes.", "Channel 1: Good.", "Channel 2: And.", "Channel 1: Why."),
    ]


def test_a_window_whose_words_have_no_times_keeps_its_speaker():
    parts = [(Span(0, 20, 1), WindowResult("", (), None)), (Span(0, 20, 2), WindowResult("Yes.", (), "en"))]
    (only,) = segment(parts, 20.0)
    assert (only.speaker, only.text) == ("Channel 2", "Yes.")


def test_without_channels_nobody_is_named():
    assert {one.speaker for one in segment([(Span(0, 20), said(("Well", 1), ("Good", 9)))], 20.0)} == {None}


a_channel = st.lists(st.tuples(st.integers(5, 30), st.lists(st.integers(0, 29), max_size=4)), max_size=5)


@given(channels=st.lists(a_channel, min_size=1, max_size=3))
def test_segments_come_in_order_as_soon_as_windows_do_and_none_is_lost(channels):
    parts = []
    for number, windows in enumerate(channels, 1):
        begin = 0
        for length, starts in windows:
            texts = [(f"{number}-{begin + at}", at) for at in sorted({at for at in starts if at < length})]
            parts.append((Span(begin, begin + length, number), said(*texts)))
            begin += length
    parts.sort(key=lambda part: part[0].start_s)
    segmenter = SpeakerSegmenter(math.inf)
    at_once = [one for place, result in parts for one in segmenter.add(place, result)]
    segments = [*at_once, *segmenter.finish()]
    assert all(one.start_s <= other.start_s for one, other in pairwise(segments))
    given_texts = sorted(word.text.strip() for _, result in parts for word in result.words)
    assert sorted(word.text.strip() for one in segments for word in one.words) == given_texts
    assert all(word.text.strip()[0] == one.speaker[-1] for one in segments for word in one.words)
