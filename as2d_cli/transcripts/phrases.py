"""Divides segments into cues and lines at phrases, as broadcasters want it. Pure functions.

A break is best after punctuation, then at a pause, and bad after a short word: in most languages articles,
prepositions, pronouns and auxiliaries are short, and belong to what follows. Of all ways to divide a segment
the cheapest is found (dynamic programming), not the first that fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise

from as2d_cli.transcripts.lines import Limits, Unit, has_space, text_of, width_of
from as2d_cli.transcripts.segments import ends_clause
from as2d_cli.transcripts.styles import Style

_SHORT_LETTERS = 3
_PAUSE_S = 0.25
_BREAK, _AT_PAUSE, _AFTER_SHORT, _BEFORE_SHORT, _WITHIN = 1.0, 0.4, 0.8, -0.3, 2.0
"""What a break between phrases costs that is not after punctuation; beside a short word; in a script without
spaces."""
_CUE, _LINE = 1.0, 0.5
"""What each cue costs, and a break between lines as a share of one between cues."""
_BRIEF = 3.0
"""What a cue costs that nobody has time to read."""

Line = Sequence[Unit]


def phrased(units: Sequence[Unit], limits: Limits, style: Style) -> Iterator[Sequence[Line]]:
    """Yield the lines of each cue. Limits hold for lines of more than one unit."""
    phrases = _Phrases(units, limits, style)
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, (0,))]
    for end in range(1, len(units) + 1):
        ways = [(best[begin][0] + phrases.cue_cost(begin, end), begin) for begin in range(end)]
        cost, begin = min(ways)
        best.append((cost, (*best[begin][1], end)))
    for begin, end in pairwise(best[-1][1]):
        yield [units[first:last] for first, last in pairwise(phrases.lines(begin, end)[1])]


class _Phrases:
    """What it costs to make lines and cues of a segment's units."""

    def __init__(self, units: Sequence[Unit], limits: Limits, style: Style) -> None:
        self._units, self._limits, self._style = units, limits, style
        self._spaces = [int(has_space(unit)) for unit in units]
        widths = (width_of(text_of([unit])) + space for unit, space in zip(units, self._spaces, strict=True))
        self._ends = [0, *accumulate(widths)]
        self._breaks = [0.0, *(_break_cost(one, other) for one, other in pairwise(units)), 0.0]
        self._starts_s = [*(unit[0].start_s for unit in units), units[-1][-1].end_s]
        self.lines = cache(self._lines)

    def cue_cost(self, begin: int, end: int) -> float:
        """Return what it costs if a cue holds these units; more than any number if it cannot."""
        shown_s = self._starts_s[end] - self._starts_s[begin]
        if end - begin > 1 and self._units[end - 1][-1].end_s - self._starts_s[begin] > self._style.most_s:
            return math.inf
        brief = _BRIEF * max(0.0, 1.0 - shown_s / self._style.least_s)
        return _CUE + brief + self._breaks[end] + self.lines(begin, end)[0]

    def _lines(self, begin: int, end: int) -> tuple[float, tuple[int, ...]]:
        """Return the cheapest way to make lines of these units, with the places where they begin and end."""
        cheapest: tuple[float, tuple[int, ...]] = (math.inf, (begin, end))
        if self._fits(begin, end):
            return 0.0, (begin, end)
        best: dict[int, tuple[float, tuple[int, ...]]] = {begin: (0.0, (begin,))}
        for _ in range(self._limits.max_line_count or end - begin):
            longer: dict[int, tuple[float, tuple[int, ...]]] = {}
            for first, (cost, places) in best.items():
                for last in range(first + 1, end + 1):
                    if not self._fits(first, last):
                        break
                    way = (cost + self._line_cost(first, last, is_last=last == end), (*places, last))
                    longer[last] = min(longer.get(last, way), way)
            cheapest, best = min(cheapest, longer.get(end, cheapest)), longer
        return cheapest

    def _line_cost(self, first: int, last: int, *, is_last: bool) -> float:
        free = 1.0 - self._width(first, last) / (self._limits.max_line_width or math.inf)
        return free**2 + (0.0 if is_last else _LINE * self._breaks[last])

    def _fits(self, first: int, last: int) -> bool:
        limits = self._limits
        return last - first == 1 or (
            self._width(first, last) <= (limits.max_line_width or math.inf)
            and last - first <= (limits.max_words_per_line or math.inf)
        )

    def _width(self, first: int, last: int) -> int:
        return self._ends[last] - self._ends[first] - self._spaces[first]


def _break_cost(before: Unit, after: Unit) -> float:
    if ends_clause(before[-1]):
        return 0.0
    if not has_space(after):
        return _WITHIN
    cost = _AT_PAUSE if after[0].start_s - before[-1].end_s >= _PAUSE_S else _BREAK
    return cost + _AFTER_SHORT * _is_short(before) + _BEFORE_SHORT * _is_short(after)


def _is_short(unit: Unit) -> bool:
    return sum(map(str.isalpha, text_of([unit]))) <= _SHORT_LETTERS
