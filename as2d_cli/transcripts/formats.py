"""Writes a transcript in each output format: txt, srt, vtt, ass, tsv, csv, lrc, json and jsonl.

A format is a function from a `Transcript` to a text that is empty or ends in a newline. `FORMATS` has them
by name, which is also the extension of their files.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from as2d_cli.domain.types import Segment, Transcript, Word
from as2d_cli.transcripts.ass import write_ass
from as2d_cli.transcripts.cues import spoken, subtitles, whole_lines
from as2d_cli.transcripts.speakers import turns

Parts = tuple[str, str, str]
"""The text of a cue: what is before the word that is highlighted, that word, and what is after it."""
SCHEMA_VERSION = 1
"""Of the JSON formats; raised when a key changes its meaning or goes."""

_FRAME_S = 0.01
_OBEYED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # those below space are always escaped in JSON


def format_time(seconds: float, mark: str) -> str:
    """Return HH:MM:SS and milliseconds after `mark`; hours always, some players drop cues without.

    >>> format_time(3661.5, ",")
    '01:01:01,500'
    """
    minutes, milliseconds = divmod(_milliseconds(seconds), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{milliseconds // 1000:02d}{mark}{milliseconds % 1000:03d}"


def clock(seconds: float) -> str:
    """Return a time as people write it: minutes and whole seconds, and hours where there are.

    >>> clock(75), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def write_txt(transcript: Transcript) -> str:
    """Return the plain text on one line; of speakers who are told apart, each turn on one, with its name."""
    text = "\n".join(turns(transcript.segments)) if _has_speakers(transcript) else transcript.text.strip()
    return f"{text}\n" if text else ""


def write_srt(transcript: Transcript) -> str:
    """Return SubRip subtitles, one cue per segment unless laid out otherwise."""
    return "\n".join(
        f"{number}\n{_times(start_s, end_s, ',')}\n{_named(cue, _marked(parts, _cue))}\n"
        for number, (cue, start_s, end_s, parts) in enumerate(_shown(transcript), start=1)
    )


def write_vtt(transcript: Transcript) -> str:
    """Return WebVTT subtitles, one cue per segment unless laid out otherwise; valid also without any."""
    cues = (
        f"{_times(start_s, end_s, '.')}\n{_voice(cue)}{_marked(parts, _escaped)}\n"
        for cue, start_s, end_s, parts in _shown(transcript)
    )
    return "\n".join(["WEBVTT\n", *cues])


def _shown(transcript: Transcript) -> Iterator[tuple[Segment, float, float, Parts]]:
    """Yield what is shown one after the other: a cue, or if words are highlighted, a cue with one of them."""
    for cue, text in subtitles(transcript):
        words = spoken(cue, text, 1000) if transcript.highlights_words else ()
        now, end = _milliseconds(cue.start_s), _milliseconds(cue.end_s)
        if not words or now >= end:
            yield cue, cue.start_s, cue.end_s, (text, "", "")
            continue
        for word in words:
            if word.start > now:
                yield cue, now / 1000, word.start / 1000, (text, "", "")
            if word.stop > word.start:
                parts = text[: word.begin], text[word.begin : word.end], text[word.end :]
                yield cue, word.start / 1000, word.stop / 1000, parts
            now = word.stop
        if end > now:
            yield cue, now / 1000, end / 1000, (text, "", "")


def _marked(parts: Parts, safe: Callable[[str], str]) -> str:
    """Return the parts of a cue with the second underlined, as openai/whisper does with the word spoken."""
    before, word, after = map(safe, parts)
    return f"{before}<u>{word}</u>{after}" if word else before


def _has_speakers(transcript: Transcript) -> bool:
    return any(segment.speaker for segment in transcript.segments)


def _named(segment: Segment, text: str) -> str:
    """Return `text` after the name of who says it, if that is known."""
    return f"{segment.speaker}: {text}" if segment.speaker else text


def _voice(segment: Segment) -> str:
    """Return WebVTT's tag of who speaks (W3C, section 4.2.2); the end of the cue ends it."""
    return f"<v {segment.speaker}>" if segment.speaker else ""


def _times(start_s: float, end_s: float, mark: str) -> str:
    """Return when a cue is shown: for a moment at least, as WebVTT wants it (W3C, section 4.1)."""
    start_s = _milliseconds(start_s) / 1000
    return f"{format_time(start_s, mark)} --> {format_time(max(end_s, start_s + 0.001), mark)}"


def _cue(text: str) -> str:
    """Return `text` without the arrow that would be read as the times of another cue."""
    return re.sub("--+>", "->", text)


def _escaped(text: str) -> str:
    """Return `text` with what WebVTT takes for markup escaped (W3C WebVTT, section 4.2.2)."""
    return _cue(text).replace("&", "&amp;").replace("<", "&lt;")


def write_tsv(transcript: Transcript) -> str:
    """Return `start end text` in tab-separated columns, times in whole milliseconds, as Whisper does.

    Where speakers are told apart, a column `speaker` is before the text.
    """
    return "".join("\t".join(row) + "\n" for row in _rows(transcript))


def write_csv(transcript: Transcript) -> str:
    """Return `start,end,text`, quoted by RFC 4180, times in whole milliseconds, as whisper.cpp does.

    Where speakers are told apart, a column `speaker` is before the text, as there.
    """
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(_rows(transcript))
    return table.getvalue()


def _rows(transcript: Transcript) -> Iterator[list[str]]:
    """Yield the names of the columns, and a row for each segment."""
    has_speakers = _has_speakers(transcript)
    yield ["start", "end", *["speaker"] * has_speakers, "text"]
    for segment, text in whole_lines(transcript):
        times = [str(_milliseconds(seconds)) for seconds in (segment.start_s, segment.end_s)]
        yield [*times, *[segment.speaker or ""] * has_speakers, text]


def write_lrc(transcript: Transcript) -> str:
    """Return lyrics lines, `[mm:ss.xx]text`; minutes grow beyond 99 as players expect."""
    lines = []
    for segment, text in whole_lines(transcript):
        minutes, hundredths = divmod(_milliseconds(segment.start_s) // 10, 6000)
        lines.append(
            f"[{minutes:02d}:{hundredths // 100:02d}.{hundredths % 100:02d}]{_named(segment, text)}\n"
        )
    return "".join(lines)


def write_json(transcript: Transcript) -> str:
    """Return everything known, in a superset of Whisper's JSON."""
    return to_json(document(transcript), indent=2) + "\n"


def write_jsonl(transcript: Transcript) -> str:
    """Return one line per segment, each as in the JSON format."""
    return "".join(to_json(segment) + "\n" for segment in document(transcript)["segments"])


def document(transcript: Transcript) -> dict[str, Any]:
    """Return what the JSON format holds, as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "text": transcript.text,
        "language": transcript.language,
        "duration": _rounded(transcript.duration_s),
        "task": transcript.task,
        "model": transcript.target,
        "drafter": transcript.drafter,
        "segments": [_segment(number, segment) for number, segment in enumerate(transcript.segments)],
    }


def _segment(number: int, segment: Segment) -> dict[str, Any]:
    """Return Whisper's keys. What greedy decoding has no figure for is null; temperature is always 0."""
    fields: dict[str, Any] = {
        "id": number,
        "seek": int(segment.start_s / _FRAME_S),
        "start": _rounded(segment.start_s),
        "end": _rounded(segment.end_s),
        "text": segment.text,
        "tokens": [int(token) for token in segment.tokens],
        "temperature": 0.0,
        "avg_logprob": None,
        "compression_ratio": _compression_ratio(segment.text),
        "no_speech_prob": None,
    }
    if segment.speaker is not None:
        fields["speaker"] = segment.speaker
    if segment.words:
        fields["words"] = [_word(word) for word in segment.words]
    return fields


def _word(word: Word) -> dict[str, Any]:
    return {
        "word": word.text,
        "start": _rounded(word.start_s),
        "end": _rounded(word.end_s),
        "probability": None if word.probability is None else float(word.probability),
    }


def _rounded(seconds: float) -> float:
    return round(float(seconds), 3)


def _compression_ratio(text: str) -> float:
    """Return Whisper's measure of repetition: bytes of text per byte of it compressed by zlib."""
    data = text.encode("utf-8", "ignore")
    return len(data) / len(zlib.compress(data))


def to_json(value: object, indent: int | None = None) -> str:
    """Return JSON as people read it, but with what a terminal obeys escaped; the value is the same."""
    # allow_nan=False: NaN is no JSON, and no figure here may be one.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


FORMATS: dict[str, Callable[[Transcript], str]] = {
    "txt": write_txt,
    "srt": write_srt,
    "vtt": write_vtt,
    "ass": write_ass,
    "tsv": write_tsv,
    "json": write_json,
    "jsonl": write_jsonl,
    "csv": write_csv,
    "lrc": write_lrc,
}
"""Name and extension of each format, and what writes it."""

SUBTITLES = frozenset({"srt", "vtt", "ass"})
"""Formats that show cues, which can be laid out."""
HIGHLIGHTING = frozenset({"srt", "vtt"})
"""Those that can underline the word that is spoken; ass has a way of its own."""
