"""Cues keep every word once and in order, within their limits, and players read them."""

from itertools import pairwise

import pysubs2
import pytest
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.domain.types import Segment, Transcript, Word
from as2d_cli.transcripts.formats import write_lrc, write_srt, write_tsv, write_vtt
from as2d_cli.transcripts.subtitles import Layout, lay_out


def segment(texts, start_s=0.0):
    words = tuple(
        Word(text, start_s + index, start_s + index + 0.9, tokens=(index,))
        for index, text in enumerate(texts)
    )
    text = "".join(texts).strip()
    return Segment(words[0].start_s, words[-1].end_s, text, words, tuple(range(len(words))))


SAID = segment([" And", " so", " my", " fellow", " Americans", ",", " ask", " not"])


@pytest.mark.parametrize(
    ("layout", "cues"),
    [
        (Layout(), ["And so my fellow Americans, ask not"]),
        (Layout(max_line_width=16), ["And so my fellow\nAmericans, ask\nnot"]),
        (Layout(16, 1), ["And so my fellow", "Americans, ask", "not"]),
        (Layout(16, 2), ["And so my fellow", "Americans,\nask not"]),
        (Layout(30), ["And so my fellow\nAmericans, ask not"]),
        (Layout(max_words_per_line=3), ["And so my", "fellow Americans, ask", "not"]),
        (Layout(None, 2, 3), ["And so my\nfellow Americans, ask", "not"]),
        (Layout(16, 1, 3), ["And so my", "fellow", "Americans,", "ask not"]),
        (Layout(1, 1), ["And", "so", "my", "fellow", "Americans,", "ask", "not"]),
    ],
)
def test_lines_and_cues_are_as_few_as_can_be_and_evenly_filled(layout, cues):
    assert [cue.text for cue in lay_out([SAID], layout)] == cues


def test_a_cue_lasts_from_its_first_word_to_its_last():
    first, second = lay_out([SAID], Layout(16, 2))
    assert (first.start_s, first.end_s, second.start_s, second.end_s) == (0, 3.9, 4, 7.9)
    assert (first.tokens, second.tokens) == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_scripts_without_spaces_break_between_characters_that_count_two():
    (cue,) = lay_out([segment(list("今日はいい天気"))], Layout(8))
    assert cue.text == "今日はい\nい天気"
    (cue,) = lay_out([segment(list("ｱｲｳ한국가"))], Layout(9))  # halfwidth, and wide
    assert cue.text == "ｱｲｳ한국가"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("今日は晴れて、いい天気です散歩に行きます", 30, "今日は晴れて、\nいい天気です散歩に行きます"),
        ("今日は晴れて、いい天気です散歩に行きます", 22, "今日は晴れて、いい天\n気です散歩に行きます"),
        ("今日は、いい天気ですから散歩に行きましょう", 40, "今日は、いい天気ですか\nら散歩に行きましょう"),
        ("彼は言った。「はい、行きます」", 20, "彼は言った。\n「はい、行きます」"),
        ("我们今天去公园、你去不去呢", 16, "我们今天去公园、\n你去不去呢"),
        ("我们今天去公园、你去不去呢", 14, "我们今天去公\n园、你去不去呢"),
        ("はいはい」と彼は", 8, "はいは\nい」と\n彼は"),
        ("はいは「はい」", 8, "はいは\n「はい」"),
    ],
)
def test_lines_without_spaces_break_after_punctuation_and_never_before_it(text, width, lines):
    (cue,) = lay_out([segment(list(text))], Layout(width))
    assert cue.text == lines


def spoken(*spans):
    words = tuple(Word(f" w{number}", start_s, end_s) for number, (start_s, end_s) in enumerate(spans))
    return Segment(words[0].start_s, words[-1].end_s, "".join(word.text for word in words).strip(), words)


@pytest.mark.parametrize(
    ("spans", "times"),
    [
        ([(1, 1.1), (2, 3)], [(1, 1.3), (2, 3)]),
        ([(1, 2), (2, 2.1), (2.1, 3)], [(1, 1.9), (1.9, 2.2), (2.2, 3)]),
        ([(0, 0.1), (0.1, 1)], [(0, 0.3), (0.3, 1)]),
        ([(0, 0.9), (0.9, 1)], [(0, 0.7), (0.7, 1)]),
        ([(5, 5), (5, 5), (5, 5), (7, 8)], [(4.7, 5), (5, 5.3), (5.3, 5.6), (7, 8)]),
        ([(0, 0.1), (0.1, 0.2)], [(0, 0.1), (0.1, 0.2)]),
    ],
)
def test_cues_of_a_word_can_be_seen_as_neighbours_make_room(spans, times):
    cues = lay_out([spoken(*spans)], Layout(max_words_per_line=1))
    assert [time for cue in cues for time in (cue.start_s, cue.end_s)] == pytest.approx(
        [time for pair in times for time in pair]
    )
    assert [cue.words[0].start_s for cue in cues] == [start_s for start_s, _ in spans]


@given(st.lists(st.tuples(st.floats(0, 0.5), st.floats(0, 1)), min_size=1, max_size=40), st.integers(1, 5))
def test_cues_last_and_stay_in_order_however_fast_somebody_speaks(pauses_and_lengths, words_per_line):
    spans, now_s = [], 0.0
    for pause_s, length_s in pauses_and_lengths:
        spans.append((now_s + pause_s, now_s + pause_s + length_s))
        now_s = spans[-1][1]
    cues = lay_out([spoken(*spans)], Layout(max_words_per_line=words_per_line))
    least_s = min(0.3, now_s / len(cues))
    assert all(cue.end_s - cue.start_s >= least_s - 1e-5 for cue in cues)
    assert all(earlier.end_s <= later.start_s for earlier, later in pairwise(cues))
    assert cues[0].start_s >= 0
    assert cues[-1].end_s == now_s


def test_a_segment_without_words_stays_as_it_is():
    bare = Segment(1.0, 2.0, "And so my fellow Americans")
    assert lay_out([bare], Layout(5, 1)) == (bare,)


texts = st.lists(
    st.sampled_from([" a", " bcd", ",", " longer-word", "語", " -->", " x\ny"]), min_size=1, max_size=30
)
limits = st.none() | st.integers(1, 20)


@given(st.lists(texts, max_size=4), st.builds(Layout, limits, limits, limits))
def test_every_word_is_in_one_cue_and_every_limit_holds(parts, layout):
    segments = [segment(part, 100.0 * number) for number, part in enumerate(parts)]
    cues = lay_out(segments, layout)
    assert [word for cue in cues for word in cue.words] == [word for one in segments for word in one.words]
    assert all(earlier.end_s <= later.start_s for earlier, later in pairwise(cues))
    if layout.is_free:
        return
    for cue in cues:
        lines = cue.text.split("\n")
        assert "".join(cue.text.split()) == "".join("".join(word.text.split()) for word in cue.words)
        assert len(lines) <= (layout.lines_per_cue or len(lines))
        for line in lines:
            assert (
                layout.max_line_width is None
                or len(line) + line.count("語") <= layout.max_line_width
                or len(line.split()) <= 2
            )


def test_players_read_the_lines_of_cues_and_other_formats_show_segments():
    cues = lay_out([SAID], Layout(16, 2))
    transcript = Transcript(SAID.text, (SAID,), "en", 8.0, "t", None, cues=cues)
    subtitles = pysubs2.SSAFile.from_string(write_srt(transcript), format_="srt")
    assert [event.plaintext for event in subtitles] == ["And so my fellow", "Americans,\nask not"]
    captions = webvtt.from_string(write_vtt(transcript))
    assert [caption.text for caption in captions] == ["And so my fellow", "Americans,\nask not"]
    assert [caption.end for caption in captions] == ["00:00:03.900", "00:00:07.900"]
    assert write_tsv(transcript).splitlines()[1:] == ["0\t7900\tAnd so my fellow Americans, ask not\t\t\t"]
    assert write_lrc(transcript) == "[00:00.00]And so my fellow Americans, ask not\n"
