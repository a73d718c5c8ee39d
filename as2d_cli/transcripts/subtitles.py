"""Lays segments out as subtitle cues: lines of limited length, cues of limited lines. Pure functions.

The limits are those of openai/whisper's and whisper-ctranslate2's subtitle writers. Unlike there, a cue
never goes on into the next sentence, all three limits hold together, and lines and cues that a limited
width makes necessary are about equally long: no word flashes up alone because it did not fit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from as2d_cli.domain.types import Segment, Word
from as2d_cli.transcripts.segments import starts_word

Unit = tuple[Word, ...]
"""What is written as one word, and never broken."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Limits of subtitles; None: no limit."""

    max_line_width: int | None = None
    """Characters in a line; a longer word gets a line to itself."""
    max_line_count: int | None = None
    """Lines in a cue. None: one if only words are limited, else as many as the segment needs."""
    max_words_per_line: int | None = None

    @property
    def is_free(self) -> bool:
        """Whether segments are cues as they are."""
        return self.max_line_width is None and self.max_words_per_line is None

    @property
    def lines_per_cue(self) -> int | None:
        """Lines in a cue; None: any number."""
        return 1 if self.max_line_count is None and self.max_line_width is None else self.max_line_count


def lay_out(segments: Iterable[Segment], layout: Layout) -> tuple[Segment, ...]:
    r"""Return the cues that `segments` make: segments with lines apart by newlines, every word once.

    A cue begins with its first word and ends with its last. A segment without words keeps its text.

    >>> words = tuple(Word(f" {text}", at, at + 1) for at, text in enumerate("ask not what your".split()))
    >>> one = Segment(0, 4, "ask not what your", words)
    >>> [cue.text for cue in lay_out([one], Layout(max_line_width=8))]
    ['ask not\nwhat\nyour']
    >>> [(cue.start_s, cue.text) for cue in lay_out([one], Layout(8, max_line_count=2))]
    [(0, 'ask not'), (2, 'what\nyour')]
    >>> [cue.text for cue in lay_out([one], Layout(max_words_per_line=3))]
    ['ask not what', 'your']
    """
    return tuple(cue for segment in segments for cue in _cues(segment, layout))


def _cues(segment: Segment, layout: Layout) -> Iterator[Segment]:
    if layout.is_free or not segment.words:
        yield replace(segment, text=" ".join(segment.text.split()))
        return
    lines: Sequence[Sequence[Unit]] = list(_lines(_units(segment.words), layout))
    count = layout.lines_per_cue or len(lines)
    lines = _balanced(lines, layout, -(-len(lines) // count) * count)
    for first in range(0, len(lines), count):
        units = [unit for line in lines[first : first + count] for unit in line]
        words = tuple(word for unit in units for word in unit)
        fewest = list(_lines(units, layout))
        text = "\n".join(filter(None, map(_text, _balanced(fewest, layout, len(fewest)))))
        tokens = tuple(token for word in words for token in word.tokens)
        yield Segment(words[0].start_s, words[-1].end_s, text, words, tokens)


def _balanced(lines: Sequence[Sequence[Unit]], layout: Layout, count: int) -> Sequence[Sequence[Unit]]:
    """Return the units of `lines` in at most `count` lines, the longest of them as short as can be."""
    if layout.max_line_width is None:
        return lines
    units = [unit for line in lines for unit in line]

    def narrowed(width: int) -> list[Sequence[Unit]]:
        return list(_lines(units, replace(layout, max_line_width=width)))

    widths = range(1, min(layout.max_line_width, max(map(len, map(_text, lines)))))
    found = bisect_left(widths, True, key=lambda width: len(narrowed(width)) <= count)
    return narrowed(widths[found]) if found < len(widths) else lines


def _lines(units: Iterable[Unit], layout: Layout) -> Iterator[Sequence[Unit]]:
    """Fill lines with as much as fits."""
    line: list[Unit] = []
    for unit in units:
        if line and not _fits([*line, unit], layout):
            yield line
            line = []
        line.append(unit)
    if line:
        yield line


def _fits(line: Sequence[Unit], layout: Layout) -> bool:
    width, words = layout.max_line_width, layout.max_words_per_line
    return (width is None or len(_text(line)) <= width) and (words is None or len(line) <= words)


def _units(words: Iterable[Word]) -> Iterator[Unit]:
    """Yield the words, those together that are written together."""
    unit: list[Word] = []
    for word in words:
        if unit and starts_word(word):
            yield tuple(unit)
            unit = []
        unit.append(word)
    if unit:
        yield tuple(unit)


def _text(line: Iterable[Unit]) -> str:
    return " ".join("".join(word.text for unit in line for word in unit).split())
