"""Divides words into lines of limited length. Pure functions.

Lines that a limited width makes necessary are about equally long. Scripts without spaces are broken after
punctuation where that takes no more lines, and their wide characters count as two.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from as2d_cli.domain.types import Word
from as2d_cli.transcripts.segments import ends_clause, starts_word

Unit = tuple[Word, ...]
"""What is written as one word, and never broken."""
Fill = Callable[[Iterable[Unit], "Limits"], Iterator[Sequence[Unit]]]
"""Divides units into lines within limits."""
_BAD_BREAK = 0.25
"""What a break between two characters costs, as a part of the widest line."""
_BEGINS_NO_LINE = frozenset({"Pe", "Pf", "Po"})
_ENDS_NO_LINE = frozenset({"Ps", "Pi"})
"""Unicode's categories of closing and opening punctuation."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of lines and cues; None: no limit."""

    max_line_width: int | None = None
    """Columns in a line, two for East Asian wide characters; a longer word gets a line to itself."""
    max_line_count: int | None = None
    """Lines in a cue. None: one if only words are limited, else as many as the segment needs."""
    max_words_per_line: int | None = None

    @property
    def is_free(self) -> bool:
        """Whether lines may have any length."""
        return self.max_line_width is None and self.max_words_per_line is None

    @property
    def lines_per_cue(self) -> int | None:
        """Lines in a cue; None: any number."""
        return 1 if self.max_line_count is None and self.max_line_width is None else self.max_line_count


def balanced(lines: Sequence[Sequence[Unit]], limits: Limits, count: int) -> Sequence[Sequence[Unit]]:
    """Return the units of `lines` in at most `count` lines, the longest of them as short as can be.

    Where lines break without a space, a break after punctuation is worth a somewhat longer line.
    """
    if limits.max_line_width is None:
        return lines
    units = [unit for line in lines for unit in line]

    def filled(width: int, fill: Fill = filled_lines) -> Sequence[Sequence[Unit]]:
        return list(fill(units, replace(limits, max_line_width=width)))

    total = sum(map(width_of, map(text_of, lines)))
    most = min(limits.max_line_width, total)
    if all(map(has_space, units[1:])):
        widths = range(1, most + 1)
        found = bisect_left(widths, True, key=lambda width: len(filled(width)) <= count)
        return filled(widths[found]) if found < len(widths) else lines
    ways = (
        filled(width, fill) for width in range(total // count, most + 1) for fill in (filled_lines, _phrased)
    )
    few = [way for way in ways if len(way) <= count]
    return min([*few, lines], key=lambda way: _raggedness(way, limits.max_line_width or 0))


def _raggedness(lines: Sequence[Sequence[Unit]], max_width: int) -> float:
    """Return the width of the longest line, and a part of a full line for each bad break."""
    bad = sum(not (has_space(after[0]) or ends_clause(before[-1][-1])) for before, after in pairwise(lines))
    return max(map(width_of, map(text_of, lines))) + _BAD_BREAK * max_width * bad


def filled_lines(units: Iterable[Unit], limits: Limits) -> Iterator[Sequence[Unit]]:
    """Fill lines with as much as fits."""
    line: list[Unit] = []
    for unit in units:
        if line and not _fits([*line, unit], limits):
            yield line
            line = []
        line.append(unit)
    if line:
        yield line


def _phrased(units: Iterable[Unit], limits: Limits) -> Iterator[Sequence[Unit]]:
    """Fill lines, but end those that would break badly after the last clause in them."""
    rest = tuple(units)
    while rest:
        count = len(next(filled_lines(rest, limits)))
        if count < len(rest) and not has_space(rest[count]):
            count = next((n for n in range(count, 0, -1) if ends_clause(rest[n - 1][-1])), count)
        yield rest[:count]
        rest = rest[count:]


def has_space(unit: Unit) -> bool:
    """Tell whether a space is before a unit."""
    return unit[0].text[:1].isspace()


def _fits(line: Sequence[Unit], limits: Limits) -> bool:
    width, words = limits.max_line_width, limits.max_words_per_line
    return (width is None or width_of(text_of(line)) <= width) and (words is None or len(line) <= words)


def units_of(words: Iterable[Word]) -> Iterator[Unit]:
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
    opens_wide = kind in _ENDS_NO_LINE and width_of(first) > 1
    return opens_wide or (starts_word(following) and kind not in _BEGINS_NO_LINE)


def width_of(text: str) -> int:
    """Return the columns that a text takes: two for what Unicode calls wide or fullwidth (UAX 11)."""
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def text_of(line: Iterable[Unit]) -> str:
    """Return the units of a line as they are written."""
    return " ".join("".join(word.text for unit in line for word in unit).split())
