"""Lays segments out as subtitle cues: lines of limited length, cues of limited lines. Pure functions.

The limits are those of openai/whisper's and whisper-ctranslate2's subtitle writers. Unlike there, a cue
never goes on into the next sentence, all three limits hold together, and lines and cues that a limited
width makes necessary are about equally long: no word flashes up alone because it did not fit. Nor does one
that is quickly spoken: cues can be seen for `_LEAST_S`. Scripts without spaces are broken after punctuation
where that takes no more lines, and their wide characters count as two.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import pairwise

from as2d_cli.domain.types import Segment, Word
from as2d_cli.transcripts.segments import ends_clause, starts_word

Unit = tuple[Word, ...]
"""What is written as one word, and never broken."""
Fill = Callable[[Iterable[Unit], "Layout"], Iterator[Sequence[Unit]]]
"""Divides units into lines within limits."""
_LEAST_S = 0.3
"""Shorter cues cannot be read."""
_BAD_BREAK = 0.25
"""What a break between two characters costs, as a part of the widest line."""
_BEGINS_NO_LINE = frozenset({"Pe", "Pf", "Po"})
_ENDS_NO_LINE = frozenset({"Ps", "Pi"})
"""Unicode's categories of closing and opening punctuation."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Limits of subtitles; None: no limit."""

    max_line_width: int | None = None
    """Columns in a line, two for East Asian wide characters; a longer word gets a line to itself."""
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

    A cue begins with its first word and ends with its last, but lasts at least 0.3 s: it takes that from the
    silence around it and from its neighbours, which may move. A segment without words keeps its text.

    >>> words = tuple(Word(f" {text}", at, at + 1) for at, text in enumerate("ask not what your".split()))
    >>> one = Segment(0, 4, "ask not what your", words)
    >>> [cue.text for cue in lay_out([one], Layout(max_line_width=8))]
    ['ask not\nwhat\nyour']
    >>> [(cue.start_s, cue.text) for cue in lay_out([one], Layout(8, max_line_count=2))]
    [(0, 'ask not'), (2, 'what\nyour')]
    >>> [cue.text for cue in lay_out([one], Layout(max_words_per_line=3))]
    ['ask not what', 'your']
    """
    told = list(segments)
    speakers = dict.fromkeys(segment.speaker for segment in told)
    each = (_laid_out([one for one in told if one.speaker == speaker], layout) for speaker in speakers)
    return tuple(merge(*each, key=lambda cue: cue.start_s))


def _laid_out(segments: Iterable[Segment], layout: Layout) -> Sequence[Segment]:
    """Return the cues of one speaker; those of several may overlap."""
    cues = [replace(cue, speaker=segment.speaker) for segment in segments for cue in _cues(segment, layout)]
    is_brief = any(cue.end_s - cue.start_s < _LEAST_S for cue in cues)
    return list(_lasting(cues)) if is_brief and not layout.is_free else cues


def _lasting(cues: Sequence[Segment]) -> Iterator[Segment]:
    """Yield cues in their order without overlap, each for `_LEAST_S`, or as long as all of them allow."""
    last_s = cues[-1].end_s
    least_s = min(_LEAST_S, last_s / len(cues))
    starts_s = [*_apart([cue.start_s for cue in cues], least_s, last_s), last_s]
    for cue, start_s, next_s in zip(cues, starts_s, starts_s[1:], strict=False):
        yield replace(cue, start_s=start_s, end_s=min(max(cue.end_s, start_s + least_s), next_s))


def _apart(times_s: Sequence[float], least_s: float, last_s: float) -> Iterator[float]:
    """Yield `times_s`, moved as little as puts them `least_s` apart, from 0 to that before `last_s`.

    Less the room that those before them need, times must rise. Isotonic regression makes them: neighbours
    that do not rise all move to their mean.
    """
    blocks: list[tuple[float, int]] = []
    for index, time_s in enumerate(times_s):
        total, count = time_s - index * least_s, 1
        while blocks and blocks[-1][0] * count > total * blocks[-1][1]:
            before, number = blocks.pop()
            total, count = total + before, count + number
        blocks.append((total, count))
    moved = (total / count for total, count in blocks for _ in range(count))
    for index, (time_s, place_s) in enumerate(zip(times_s, moved, strict=True)):
        start_s = min(max(place_s, 0.0), last_s - len(times_s) * least_s) + index * least_s
        yield time_s if abs(start_s - time_s) < 1e-6 else start_s  # not moved, but by rounding


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
    """Return the units of `lines` in at most `count` lines, the longest of them as short as can be.

    Where lines break without a space, a break after punctuation is worth a somewhat longer line.
    """
    if layout.max_line_width is None:
        return lines
    units = [unit for line in lines for unit in line]

    def filled(width: int, fill: Fill = _lines) -> Sequence[Sequence[Unit]]:
        return list(fill(units, replace(layout, max_line_width=width)))

    total = sum(map(_width, map(_text, lines)))
    most = min(layout.max_line_width, total)
    if all(map(_has_space, units[1:])):
        widths = range(1, most + 1)
        found = bisect_left(widths, True, key=lambda width: len(filled(width)) <= count)
        return filled(widths[found]) if found < len(widths) else lines
    ways = (filled(width, fill) for width in range(total // count, most + 1) for fill in (_lines, _phrased))
    few = [way for way in ways if len(way) <= count]
    return min([*few, lines], key=lambda way: _raggedness(way, layout.max_line_width or 0))


def _raggedness(lines: Sequence[Sequence[Unit]], max_width: int) -> float:
    """Return the width of the longest line, and a part of a full line for each bad break."""
    bad = sum(not (_has_space(after[0]) or ends_clause(before[-1][-1])) for before, after in pairwise(lines))
    return max(map(_width, map(_text, lines))) + _BAD_BREAK * max_width * bad


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


def _phrased(units: Iterable[Unit], layout: Layout) -> Iterator[Sequence[Unit]]:
    """Fill lines, but end those that would break badly after the last clause in them."""
    rest = tuple(units)
    while rest:
        count = len(next(_lines(rest, layout)))
        if count < len(rest) and not _has_space(rest[count]):
            count = next((n for n in range(count, 0, -1) if ends_clause(rest[n - 1][-1])), count)
        yield rest[:count]
        rest = rest[count:]


def _has_space(unit: Unit) -> bool:
    """Tell whether a space is before a unit."""
    return unit[0].text[:1].isspace()


def _fits(line: Sequence[Unit], layout: Layout) -> bool:
    width, words = layout.max_line_width, layout.max_words_per_line
    return (width is None or _width(_text(line)) <= width) and (words is None or len(line) <= words)


def _units(words: Iterable[Word]) -> Iterator[Unit]:
    """Yield the words, those together that are written together."""
    unit: list[Word] = []
    for word in words:
        if unit and _may_part(unit[-1].text, word):
            yield tuple(unit)
            unit = []
        unit.append(word)
    if unit:
        yield tuple(unit)


def _may_part(text: str, following: Word) -> bool:
    """Tell whether a line may end with `text` and the next begin with the word that follows."""
    last, first = text[-1:] or " ", following.text[:1] or " "
    if unicodedata.category(last) in _ENDS_NO_LINE:
        return first.isspace()
    kind = unicodedata.category(first)
    opens_wide = kind in _ENDS_NO_LINE and _width(first) > 1
    return opens_wide or (starts_word(following) and kind not in _BEGINS_NO_LINE)


def _width(text: str) -> int:
    """Return the columns that a text takes: two for what Unicode calls wide or fullwidth (UAX 11)."""
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def _text(line: Iterable[Unit]) -> str:
    return " ".join("".join(word.text for unit in line for word in unit).split())
