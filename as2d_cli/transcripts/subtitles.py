"""Lays segments out as subtitle cues: lines of limited length, cues of limited lines. Pure functions.

The limits are those of openai/whisper's and whisper-ctranslate2's subtitle writers. Unlike there, a cue
never goes on into the next sentence, all three limits hold together, and lines and cues that a limited
width makes necessary are about equally long: no word flashes up alone because it did not fit. Nor does one
that is quickly spoken: cues can be seen for 0.3 s. `styles` has what broadcasters want beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import zip_longest

from as2d_cli.domain.types import Segment
from as2d_cli.transcripts.lines import Limits, Unit, balanced, filled_lines, text_of, units_of
from as2d_cli.transcripts.phrases import Line, phrased
from as2d_cli.transcripts.styles import PLAIN, Style, style_in


@dataclass(frozen=True, slots=True)
class Layout(Limits):
    """How subtitles are to look. Limits that are given go before those of the style."""

    style: str = PLAIN
    """A name in `STYLES`."""
    highlight_words: bool = False
    """Whether the word that is spoken is underlined."""

    @property
    def is_free(self) -> bool:
        """Whether segments are cues as they are."""
        return self.style == PLAIN and self.max_line_width is None and self.max_words_per_line is None

    def within(self, style: Style) -> Limits:
        """Return the limits of lines."""
        return Limits(
            self.max_line_width or style.max_line_width,
            self.max_line_count or style.max_line_count,
            self.max_words_per_line,
        )


def lay_out(
    segments: Iterable[Segment], layout: Layout, *, language: str | None = None, until_s: float = math.inf
) -> tuple[Segment, ...]:
    r"""Return the cues that `segments` make: segments with lines apart by newlines, every word once.

    A cue begins with its first word and ends with its last, but lasts at least as long as the style has it:
    it takes that from the silence around it, up to `until_s`, and from its neighbours, which may move. A
    segment without words keeps its text.

    >>> from as2d_cli.domain.types import Word
    >>> words = tuple(Word(f" {text}", at, at + 1) for at, text in enumerate("ask not what your".split()))
    >>> one = Segment(0, 4, "ask not what your", words)
    >>> [cue.text for cue in lay_out([one], Layout(max_line_width=8))]
    ['ask not\nwhat\nyour']
    >>> [(cue.start_s, cue.text) for cue in lay_out([one], Layout(8, max_line_count=2))]
    [(0, 'ask not'), (2, 'what\nyour')]
    >>> [cue.text for cue in lay_out([one], Layout(max_words_per_line=3))]
    ['ask not what', 'your']
    """
    told, style = list(segments), style_in(layout.style, language)
    speakers = dict.fromkeys(segment.speaker for segment in told)
    each = (
        _laid_out([one for one in told if one.speaker == speaker], layout, style, until_s)
        for speaker in speakers
    )
    return tuple(merge(*each, key=lambda cue: cue.start_s))


def _laid_out(segments: Iterable[Segment], layout: Layout, style: Style, until_s: float) -> Iterable[Segment]:
    """Return the cues of one speaker; those of several may overlap."""
    cues = [
        replace(cue, speaker=segment.speaker) for segment in segments for cue in _cues(segment, layout, style)
    ]
    return cues if layout.is_free else _timed(cues, style, until_s)


def _timed(cues: Sequence[Segment], style: Style, until_s: float) -> Iterator[Segment]:
    """Yield cues in their order without overlap, each as long as the style wants it, or all of them allow."""
    last_s = min(until_s, cues[-1].end_s + style.linger_s)
    room_s = min(style.least_s + style.gap_s, last_s / len(cues))
    gap_s = min(style.gap_s, room_s / 2)
    starts_s = list(_apart([cue.start_s for cue in cues], room_s, last_s))
    for cue, start_s, next_s in zip_longest(cues, starts_s, starts_s[1:]):
        latest_s = min(last_s if next_s is None else next_s - gap_s, start_s + style.most_s)
        end_s = min(max(cue.end_s, start_s + _reading_s(cue.text, style)), cue.end_s + style.linger_s)
        end_s = max(end_s, start_s + room_s - gap_s)
        if next_s is not None and next_s - end_s < style.close_s:
            end_s = latest_s
        yield replace(cue, start_s=start_s, end_s=min(end_s, latest_s))


def _reading_s(text: str, style: Style) -> float:
    """Return how long it takes to read a text."""
    return max(len(text) / style.chars_per_s, len(text.split()) * style.s_per_word)


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


def _cues(segment: Segment, layout: Layout, style: Style) -> Iterator[Segment]:
    if layout.is_free or not segment.words:
        yield replace(segment, text=" ".join(segment.text.split()))
        return
    units, limits = list(units_of(segment.words)), layout.within(style)
    for lines in (_even if layout.style == PLAIN else phrased)(units, limits, style):
        words = tuple(word for line in lines for unit in line for word in unit)
        tokens = tuple(token for word in words for token in word.tokens)
        text = "\n".join(filter(None, map(text_of, lines)))
        yield Segment(words[0].start_s, words[-1].end_s, text, words, tokens)


def _even(units: Sequence[Unit], limits: Limits, _: Style) -> Iterator[Sequence[Line]]:
    """Yield the lines of cues that are about equally long."""
    lines: Sequence[Line] = list(filled_lines(units, limits))
    count = limits.lines_per_cue or len(lines)
    lines = balanced(lines, limits, -(-len(lines) // count) * count)
    for first in range(0, len(lines), count):
        of_cue = [unit for line in lines[first : first + count] for unit in line]
        fewest = list(filled_lines(of_cue, limits))
        yield balanced(fewest, limits, len(fewest))
