"""Subtitles of a style are as its broadcaster wants them, as independent readers find."""

from dataclasses import replace
from itertools import pairwise

import pysubs2
import pytest
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.domain.types import Segment, Span, Transcript, WindowResult, Word
from as2d_cli.transcripts.formats import write_srt, write_vtt
from as2d_cli.transcripts.speakers import segment
from as2d_cli.transcripts.styles import PLAIN, STYLES, style_in
from as2d_cli.transcripts.subtitles import Layout, lay_out


def said(text, pace_s=0.3, start_s=0.0):
    words, now_s = [], start_s
    for word in text.split():
        words.append(Word(f" {word}", now_s, now_s + pace_s))
        now_s += pace_s
    return Segment(start_s, now_s, text, tuple(words))


def cues(text, style="netflix", language="en", **options):
    return lay_out([said(text, **options)], Layout(style=style), language=language)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("It is not far.", ["It is not far."]),
        (
            "He said nothing at all, so I went to the station.",
            ["He said nothing at all,", "so I went to the station."],
        ),
        (
            "I put the very old lamp on the table of my friend",
            ["I put the very old lamp", "on the table of my friend"],
        ),
    ],
)
def test_lines_break_at_phrases_and_only_where_they_must(text, lines):
    (cue,) = cues(text)
    assert cue.text.split("\n") == lines


def test_a_pause_is_a_better_place_than_none():
    before, after = "seven green apples fallen", "under great trees hidden behind walls"
    words = said(before, 0.4).words + said(after, 0.4, start_s=2.0).words
    (cue,) = lay_out([Segment(0, 4.4, "", words)], Layout(style="netflix"))
    assert cue.text.split("\n") == [before, after]


def test_a_cue_is_not_longer_than_the_style_has_it():
    first, second = cues("one two, three four", pace_s=2.4)
    assert (first.text, second.text) == ("one two,", "three four")


def test_a_cue_stays_until_it_can_be_read_but_not_much_longer_than_the_speech():
    fast = "These are fifty characters that take half a second."
    (cue,) = cues(fast, pace_s=0.05)
    assert cue.end_s == pytest.approx(0.45 + 0.5)  # 12 frames after it
    (cue,) = cues(fast, pace_s=0.25)
    assert cue.end_s == pytest.approx(len(fast) / 20)
    (cue,) = cues(fast, "bbc", pace_s=0.2)
    assert cue.end_s == pytest.approx(9 * 0.3)


@pytest.mark.parametrize(
    ("style", "gap_s", "end_s"),
    [
        ("netflix", 0.4, 2.4 - 1 / 12),
        ("netflix", 0.6, 2.0),
        ("bbc", 0.9, 2.9),
        ("bbc", 1.1, 2.0),
        (PLAIN, 0.4, 2.0),
    ],
)
def test_short_gaps_are_closed_and_others_left(style, gap_s, end_s):
    segments = [said("one two three four", 0.5), said("five six seven eight", 0.5, 2.0 + gap_s)]
    first, second = lay_out(segments, Layout(42, style=style))
    assert first.end_s == pytest.approx(end_s)
    assert second.start_s == 2.0 + gap_s


def test_no_cue_goes_on_behind_the_end_of_the_file():
    (cue,) = lay_out([said("Quick.", 0.1)], Layout(style="netflix"), until_s=0.2)
    assert cue.end_s == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("language", "width", "chars_per_s"), [("ja", 26, 4), ("zh", 32, 9), ("en", 42, 20), (None, 42, 20)]
)
def test_netflix_has_other_figures_for_some_languages(language, width, chars_per_s):
    style = style_in("netflix", language)
    assert (style.max_line_width, style.chars_per_s) == (width, chars_per_s)


def test_limits_that_are_given_go_before_those_of_the_style():
    shown = lay_out([said("one two three four five six")], Layout(12, 1, style="netflix"))
    assert [cue.text for cue in shown] == ["one two", "three four", "five six"]


def test_speakers_are_laid_out_apart():
    one, other = said("I was about to say"), said("Were you really", start_s=0.5)
    talk = [replace(one, speaker="A"), replace(other, speaker="B")]
    shown = lay_out(talk, Layout(style="bbc"))
    assert [(cue.speaker, cue.start_s) for cue in shown] == [("A", 0.0), ("B", 0.5)]
    assert shown[0].end_s > 0.5


a_word = st.tuples(
    st.sampled_from(["a", "of", "word", "phrases,", "end.", "extraordinarily", "(so", "well)", "語", "。"]),
    st.floats(0, 0.4),
    st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.5, 1.2, 4.0]),
    st.booleans(),
)


def spoken(parts):
    words, now_s = [], 0.0
    for text, length_s, pause_s, has_space in parts:
        now_s += pause_s
        words.append(Word(f" {text}" if has_space else text, now_s, now_s + length_s))
        now_s += length_s
    return segment([(Span(0, now_s), WindowResult("", (), "en", tuple(words)))], now_s), now_s


@given(st.lists(a_word, min_size=1, max_size=60), st.sampled_from(["netflix", "bbc"]))
def test_whatever_is_said_every_word_is_shown_once_and_every_limit_holds(parts, name):
    segments, until_s = spoken(parts)
    style = STYLES[name]
    shown = lay_out(segments, Layout(style=name), until_s=until_s)
    assert [word for cue in shown for word in cue.words] == [word for one in segments for word in one.words]
    room_s = min(style.least_s + style.gap_s, until_s / len(shown))
    gap_s = min(style.gap_s, room_s / 2)
    assert all(later.start_s - one.end_s >= gap_s - 1e-5 for one, later in pairwise(shown))
    for cue in shown:
        assert cue.end_s - cue.start_s >= room_s - gap_s - 1e-5
        assert 0 <= cue.start_s <= cue.end_s <= until_s + 1e-6
        assert cue.end_s - cue.start_s <= style.most_s + 1e-6
        assert len(cue.text.split("\n")) <= style.max_line_count
        for line in cue.text.split("\n"):
            assert len(line) + line.count("語") + line.count("。") <= style.max_line_width or " " not in line
    transcript = Transcript("", segments, "en", until_s, "t", None, cues=shown)
    events = pysubs2.SSAFile.from_string(write_srt(transcript), format_="srt").events
    captions = webvtt.from_string(write_vtt(transcript)).captions
    texts = [cue.text for cue in shown]
    assert [event.plaintext for event in events] == [caption.text for caption in captions] == texts
