import csv
import io
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.domain.types import Segment, Transcript, Word
from as2d_cli.transcripts.formats import FORMATS, clock, format_time

TRANSCRIPT = Transcript(
    text='Hello, "world". Añb & <c> --> d',
    segments=(
        Segment(
            0.0, 1.5, 'Hello, "world".', words=(Word(" Hello,", 0.0, 0.7, 0.9), Word(' "world".', 0.8, 1.5))
        ),
        Segment(1.5, 1.6, "  \n "),
        Segment(3661.0004, 3662.9996, "Añb & <c>\n--> d", tokens=(1, 2)),
    ),
    language="en",
    duration_s=3663.0,
    target="whisper-base",
    drafter=None,
)
EMPTY = replace(TRANSCRIPT, text="", segments=(), language=None)

GOLDEN = {
    "txt": 'Hello, "world". Añb & <c> --> d\n',
    "srt": (
        '1\n00:00:00,000 --> 00:00:01,500\nHello, "world".\n\n'
        "2\n01:01:01,000 --> 01:01:03,000\nAñb & <c> -> d\n"
    ),
    "vtt": (
        'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello, "world".\n\n'
        "01:01:01.000 --> 01:01:03.000\nAñb &amp; &lt;c> -> d\n"
    ),
    "tsv": 'start\tend\ttext\n0\t1500\tHello, "world".\n3661000\t3663000\tAñb & <c> --> d\n',
    "csv": 'start,end,text\n0,1500,"Hello, ""world""."\n3661000,3663000,Añb & <c> --> d\n',
    "lrc": '[00:00.00]Hello, "world".\n[61:01.00]Añb & <c> --> d\n',
}


@pytest.mark.parametrize("name", GOLDEN)
def test_text_formats_are_exactly(name):
    assert FORMATS[name](TRANSCRIPT) == GOLDEN[name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("txt", ""),
        ("srt", ""),
        ("vtt", "WEBVTT\n"),
        ("tsv", "start\tend\ttext\n"),
        ("csv", "start,end,text\n"),
        ("jsonl", ""),
        ("lrc", ""),
    ],
)
def test_no_speech_gives_valid_empty_files(name, text):
    assert FORMATS[name](EMPTY) == text


def test_json_has_whispers_keys_and_more():
    document = json.loads(FORMATS["json"](TRANSCRIPT))
    assert list(document) == [
        *("schema_version", "text", "language", "duration", "task", "model", "drafter", "segments"),
    ]
    assert document["model"] == "whisper-base"
    assert document["drafter"] is None
    first, _, last = document["segments"]
    assert set(first) == {
        *("id", "seek", "start", "end", "text", "tokens", "temperature"),
        *("avg_logprob", "compression_ratio", "no_speech_prob", "words"),
    }
    assert first["words"][0] == {"word": " Hello,", "start": 0.0, "end": 0.7, "probability": 0.9}
    assert first["words"][1]["probability"] is None
    assert "words" not in last
    assert (last["id"], last["start"], last["end"], last["tokens"]) == (2, 3661.0, 3663.0, [1, 2])
    assert json.loads(FORMATS["json"](EMPTY))["segments"] == []


def test_jsonl_is_the_segments_of_json():
    lines = FORMATS["jsonl"](TRANSCRIPT).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(FORMATS["json"](TRANSCRIPT))["segments"]


def test_a_looping_text_has_a_high_compression_ratio():
    looping = replace(TRANSCRIPT, segments=(Segment(0, 1, "I think. " * 50), Segment(1, 2, "I think.")))
    first, second = json.loads(FORMATS["json"](looping))["segments"]
    assert first["compression_ratio"] > 2.4 > second["compression_ratio"]


def test_a_cue_is_shown_for_a_moment_at_least():
    brief = replace(TRANSCRIPT, segments=(Segment(1.0, 1.0002, "Oh."),))
    assert "00:00:01.000 --> 00:00:01.001" in FORMATS["vtt"](brief)
    assert "00:00:01,000 --> 00:00:01,001" in FORMATS["srt"](brief)


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (59.6, "1:00"), (3600, "1:00:00"), (-3, "0:00")])
def test_times_are_shown_as_on_a_clock(seconds, shown):
    assert clock(seconds) == shown


def test_times_round_and_carry():
    assert format_time(0.0004, ".") == "00:00:00.000"
    assert format_time(59.9996, ",") == "00:01:00,000"
    assert format_time(360_000, ".") == "100:00:00.000"


a_segment = st.builds(
    lambda start, length, text: Segment(start, start + length, text),
    st.floats(0, 1e5),
    st.floats(0, 30),
    st.text(
        # NUL is never in what a model wrote (`printable.spoken`), nor in what Python 3.10 takes for CSV.
        st.one_of(
            st.characters(exclude_categories=[], exclude_characters="\0"), st.sampled_from("->\r\n\t,\"'& ")
        )
    ),
)


@given(segments=st.lists(a_segment, max_size=5))
def test_any_text_stays_inside_its_cue_or_row(segments):
    transcript = replace(TRANSCRIPT, segments=tuple(segments))
    n_cues = sum(bool(segment.text.split()) for segment in segments)
    times = r"^\d\d+:\d\d:\d\d[.,]\d{3} --> \d\d+:\d\d:\d\d[.,]\d{3}$"
    for name in ("srt", "vtt"):
        text = FORMATS[name](transcript)
        assert len(re.findall(times, text, re.MULTILINE)) == text.count("-->") == n_cues
        # Blank lines only between cues.
        assert len([part for part in text.split("\n\n") if "-->" in part]) == n_cues
    assert len(list(csv.reader(io.StringIO(FORMATS["csv"](transcript), newline="")))) == n_cues + 1
    assert [line.count("\t") for line in FORMATS["tsv"](transcript).split("\n")[:-1]] == [2] * (n_cues + 1)
    assert len(FORMATS["jsonl"](transcript).split("\n")) == len(segments) + 1
    assert len(json.loads(FORMATS["json"](transcript))["segments"]) == len(segments)


TALK = replace(
    TRANSCRIPT,
    text="Well? Yes. & no",
    segments=(
        Segment(0.0, 2.0, "Well?", speaker="Channel 1"),
        Segment(1.5, 3.0, "Yes.", speaker="Channel 2"),
        Segment(3.0, 4.0, "& no", speaker="Channel 2"),
    ),
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("txt", "Channel 1: Well?\nChannel 2: Yes. & no\n"),
        (
            "srt",
            "1\n00:00:00,000 --> 00:00:02,000\nChannel 1: Well?\n\n"
            "2\n00:00:01,500 --> 00:00:03,000\nChannel 2: Yes.\n\n"
            "3\n00:00:03,000 --> 00:00:04,000\nChannel 2: & no\n",
        ),
        (
            "vtt",
            "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n<v Channel 1>Well?\n\n"
            "00:00:01.500 --> 00:00:03.000\n<v Channel 2>Yes.\n\n"
            "00:00:03.000 --> 00:00:04.000\n<v Channel 2>&amp; no\n",
        ),
        (
            "tsv",
            "start\tend\tspeaker\ttext\n0\t2000\tChannel 1\tWell?\n1500\t3000\tChannel 2\tYes.\n"
            "3000\t4000\tChannel 2\t& no\n",
        ),
        (
            "csv",
            "start,end,speaker,text\n0,2000,Channel 1,Well?\n1500,3000,Channel 2,Yes.\n"
            "3000,4000,Channel 2,& no\n",
        ),
        ("lrc", "[00:00.00]Channel 1: Well?\n[00:01.50]Channel 2: Yes.\n[00:03.00]Channel 2: & no\n"),
    ],
)
def test_speakers_are_named_in_each_format(name, text):
    assert FORMATS[name](TALK) == text


def test_json_has_the_speaker_of_each_segment():
    segments = json.loads(FORMATS["json"](TALK))["segments"]
    assert [one["speaker"] for one in segments] == ["Channel 1", "Channel 2", "Channel 2"]
