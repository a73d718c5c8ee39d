"""The published JSON Schema holds for what is written, and would notice what is not as it says."""

import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from as2d_cli.domain.types import Segment, Transcript, Word
from as2d_cli.transcripts.formats import write_json, write_jsonl

SCHEMA = json.loads(
    (resources.files("as2d_cli.transcripts") / "transcript.schema.json").read_text(encoding="utf-8")
)
TRANSCRIPTS = Draft202012Validator(SCHEMA)
SEGMENTS = Draft202012Validator({**SCHEMA["$defs"]["segment"], "$defs": SCHEMA["$defs"]})

seconds = st.floats(0, 1e5, allow_nan=False)
words = st.builds(Word, st.text(), seconds, seconds, st.none() | st.floats(0, 1))
segments = st.builds(
    Segment,
    seconds,
    seconds,
    st.text(min_size=1),
    st.lists(words, max_size=3).map(tuple),
    st.lists(st.integers(0, 60000)).map(tuple),
    st.none() | st.sampled_from(["Channel 1", "Channel 2"]),
)
transcripts = st.builds(
    Transcript,
    st.text(),
    st.lists(segments, max_size=3).map(tuple),
    st.none() | st.sampled_from(["en", "de"]),
    seconds,
    st.just("whisper-base"),
    st.none() | st.just("whisper-tiny.en"),
)


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


@given(transcripts)
def test_whatever_is_written_is_as_the_schema_says(transcript):
    TRANSCRIPTS.validate(json.loads(write_json(transcript)))
    lines = write_jsonl(transcript).split("\n")[:-1]
    assert len(lines) == len(transcript.segments)
    for line in lines:
        SEGMENTS.validate(json.loads(line))


@pytest.mark.parametrize("key", SCHEMA["required"])
def test_a_missing_key_is_noticed(key):
    document = json.loads(write_json(Transcript("", (), None, 0.0, "t", None)))
    TRANSCRIPTS.validate(document)
    del document[key]
    assert not TRANSCRIPTS.is_valid(document)


@pytest.mark.parametrize(
    ("key", "value"), [("start", -0.1), ("end", None), ("tokens", ["a"]), ("temperature", 0.2), ("new", 1)]
)
def test_a_wrong_segment_is_noticed(key, value):
    one = Segment(0.0, 1.0, "so", (Word(" so", 0.0, 1.0, 0.5, (7,)),), (7,))
    (segment,) = json.loads(write_json(Transcript("so", (one,), "en", 1.0, "t", None)))["segments"]
    SEGMENTS.validate(segment)
    assert not SEGMENTS.is_valid({**segment, key: value})


def test_files_and_the_json_of_a_run_are_as_the_schema_says(as2d, scripted, sound, tmp_path):
    ended = as2d("transcribe", sound("a.wav", 40), "--json", "--word-timestamps", "-f", "json,jsonl")
    assert ended.code == 0
    transcript, _report = ended.records()
    TRANSCRIPTS.validate(transcript)
    TRANSCRIPTS.validate(json.loads((tmp_path / "a.json").read_text(encoding="utf-8")))
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines == transcript["segments"]
    for line in lines:
        SEGMENTS.validate(line)
        assert line["tokens"]
        assert line["words"]
