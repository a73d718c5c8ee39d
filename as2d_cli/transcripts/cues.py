"""What subtitle formats show of a transcript, and where in a cue each word stands. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from as2d_cli.domain.types import Segment, Transcript


def subtitles(transcript: Transcript) -> Iterator[tuple[Segment, str]]:
    """Yield the cues that have text, and that text in its lines."""
    if transcript.cues is None:
        yield from whole_lines(transcript)
        return
    for cue in transcript.cues:
        lines = (" ".join(line.split()) for line in cue.text.split("\n"))
        if text := "\n".join(filter(None, lines)):
            yield cue, text


def whole_lines(transcript: Transcript) -> Iterator[tuple[Segment, str]]:
    """Yield the segments that have text, and that text on one line."""
    for segment in transcript.segments:
        text = " ".join(segment.text.split())
        if text:
            yield segment, text


class Spoken(NamedTuple):
    """A word of a cue: where it stands in its text, and when it is spoken, in whole units of time."""

    begin: int
    end: int
    start: int
    stop: int


def spoken(cue: Segment, text: str, per_s: int) -> list[Spoken]:
    """Return the words of a cue in order, their times within it; none if it has no words with times.

    `text` is that of the cue with its whitespace put in order, `per_s` the units of a second.
    """
    words, place, now = [], 0, round(cue.start_s * per_s)
    last = round(cue.end_s * per_s)
    for word in cue.words:
        pieces = word.text.split()
        if not pieces:
            continue
        begin = end = text.find(pieces[0], place)
        for piece in pieces:
            end = text.find(piece, end) + len(piece)
        start = min(max(round(word.start_s * per_s), now), last)
        now = min(max(round(word.end_s * per_s), start), last)
        words.append(Spoken(begin, end, start, now))
        place = end
    return words
