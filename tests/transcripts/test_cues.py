"""The word that is spoken is found in its cue, and highlighted as players and openai/whisper have it."""

import html
from dataclasses import replace

import pysubs2
import pytest
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.domain.types import Segment, Transcript, Word
from as2d_cli.transcripts.cues import spoken
from as2d_cli.transcripts.formats import write_ass, write_srt, write_vtt
from as2d_cli.transcripts.subtitles import Layout, lay_out

WORDS = (
    Word(" And", 0.0, 0.5),
    Word(" so", 0.8, 1.0),
    Word(" & <my>", 1.0, 1.0),
    Word(" friends.", 1.0, 1.6),
)
SAID = Segment(0.0, 1.6, "And so & <my> friends.", WORDS)


PLAINLY = Layout()


def transcript(*segments, layout=PLAINLY):
    cues = lay_out(segments, layout)
    highlights = layout.highlight_words
    return Transcript("", segments, "en", 99.0, "t", None, cues=cues, highlights_words=highlights)


def test_highlighting_is_as_openai_whisper_writes_it():
    written = write_srt(transcript(SAID, layout=Layout(highlight_words=True)))
    assert written == (
        "1\n00:00:00,000 --> 00:00:00,500\n<u>And</u> so & <my> friends.\n\n"
        "2\n00:00:00,500 --> 00:00:00,800\nAnd so & <my> friends.\n\n"
        "3\n00:00:00,800 --> 00:00:01,000\nAnd <u>so</u> & <my> friends.\n\n"
        "4\n00:00:01,000 --> 00:00:01,600\nAnd so & <my> <u>friends.</u>\n"
    )


def test_in_webvtt_the_rest_stays_escaped_and_readers_see_the_text():
    written = write_vtt(transcript(SAID, layout=Layout(highlight_words=True)))
    assert "\nAnd <u>so</u> &amp; &lt;my> friends.\n" in written
    captions = webvtt.from_string(written).captions
    assert {html.unescape(caption.text) for caption in captions} == {"And so & <my> friends."}


def test_lines_are_kept_where_words_are_highlighted():
    layout = Layout(max_line_width=8, highlight_words=True)
    assert "And so\n& <my>\n<u>friends.</u>" in write_srt(transcript(SAID, layout=layout))


def test_a_cue_without_times_of_words_is_shown_as_it_is():
    bare = Segment(0.0, 1.6, "And so")
    written = write_srt(transcript(bare, layout=Layout(highlight_words=True)))
    assert written == "1\n00:00:00,000 --> 00:00:01,600\nAnd so\n"


def test_karaoke_gives_each_word_its_time():
    (event,) = pysubs2.SSAFile.from_string(write_ass(transcript(SAID)), format_="ass").events
    assert (event.start, event.end, event.name) == (0, 1600, "")
    assert event.text == r"{\k50}And{\k30} {\k20}so {\k0}& <my> {\k60}friends."
    assert event.plaintext == "And so & <my> friends."


def test_ass_has_lines_speakers_and_nothing_that_a_player_would_obey():
    odd = Segment(0.0, 1.0, r"C:\New {\b1}", speaker="Channel 2")
    said = replace(SAID, start_s=0.0, speaker="Channel 1")
    written = write_ass(transcript(odd, said, layout=Layout(max_line_width=8)))
    first, second = sorted(pysubs2.SSAFile.from_string(written, format_="ass").events, key=lambda e: e.name)
    assert (first.name, first.plaintext) == ("Channel 1", "And so\n& <my>\nfriends.")
    assert (second.name, second.plaintext) == ("Channel 2", "C:\\\u2060New \uff5b\\\u2060b1\uff5d")
    assert "pysubs2" not in written


@pytest.mark.parametrize("write", [write_srt, write_vtt, write_ass])
def test_no_speech_gives_a_valid_empty_file(write):
    written = write(transcript(layout=Layout(highlight_words=True)))
    assert pysubs2.SSAFile.from_string(written, format_=write.__name__[-3:]).events == []


a_word = st.builds(
    lambda text, start_s, length_s: Word(text, start_s, start_s + length_s),
    st.sampled_from([" a", " bc", "d", ",", " a b", "  ", " -->", " <u>", "語"]),
    st.floats(0, 9),
    st.floats(0, 2),
)


@given(
    st.lists(a_word, min_size=1, max_size=12), st.sampled_from([Layout(), Layout(6, 2), Layout(style="bbc")])
)
def test_each_word_is_in_its_place_and_time_goes_on(words, layout):
    words = sorted(words, key=lambda word: word.start_s)
    text = "".join(word.text for word in words).strip()
    said = Segment(words[0].start_s, max(word.end_s for word in words), text, tuple(words))
    for cue in lay_out([said], layout):
        shown = "\n".join(" ".join(line.split()) for line in cue.text.split("\n"))
        found = spoken(cue, shown, 1000)
        pieces = [shown[one.begin : one.end].split() for one in found]
        assert pieces == [word.text.split() for word in cue.words if word.text.split()]
        times = [time for one in found for time in (one.start, one.stop)]
        assert times == sorted(times)
        assert all(round(cue.start_s * 1000) <= time <= round(cue.end_s * 1000) for time in times)
    told = transcript(said, layout=replace(layout, highlight_words=True))
    for written, kind in ((write_srt(told), "srt"), (write_vtt(told), "vtt")):
        events = pysubs2.SSAFile.from_string(written, format_=kind).events
        assert all(event.start < event.end for event in events)
