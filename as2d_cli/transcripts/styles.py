"""How broadcasters want their subtitles, by name, with the figures that they have published.

netflix: Timed Text Style Guides (partnerhelp.netflixstudios.com), General Requirements: a cue lasts from
5/6 s to 7 s, with a gap of 2 frames (here of 1/24 s) before the next, and none between 2 frames and half a
second; it may stay 12 frames after the speech; two lines. English: 42 characters a line, 20 a second for
adults. Japanese, Korean and Chinese: 13, 16 and 16 characters a line, 4, 12 and 9 a second.

bbc: Subtitle Guidelines (www.bbc.co.uk/accessibility/forproducts/guides/subtitles), sections 3 to 5: two
lines of 37 characters; 0.3 s for each word; gaps of less than a second are closed; a cue should not stay
longer than 1.5 s after the speech. They state no longest time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

PLAIN = "plain"
_FRAME_S = 1 / 24


@dataclass(frozen=True, slots=True)
class Style:
    """What a cue has to be like."""

    max_line_width: int | None = None
    max_line_count: int | None = None
    """Limits of lines, as in `Limits`."""
    least_s: float = 0.3
    """A cue lasts so long at least; shorter ones cannot be read."""
    most_s: float = 1e9
    """And so long at most, but for a single word."""
    chars_per_s: float = 1e9
    s_per_word: float = 0.0
    """How fast people read; a cue stays longer where the speech around it leaves room."""
    linger_s: float = 0.0
    """How long it may stay after its last word for that."""
    gap_s: float = 0.0
    """Between two cues at least."""
    close_s: float = 0.0
    """A shorter gap is closed, down to `gap_s`."""
    in_language: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """Columns of a line and characters a second, by Whisper's code, where they are different."""


_NETFLIX = Style(
    max_line_width=42,
    max_line_count=2,
    least_s=5 / 6,
    most_s=7.0,
    chars_per_s=20.0,
    linger_s=12 * _FRAME_S,
    gap_s=2 * _FRAME_S,
    close_s=0.5,
    in_language={"ja": (26, 4.0), "ko": (32, 12.0), "zh": (32, 9.0), "yue": (32, 9.0)},
)
_BBC = Style(max_line_width=37, max_line_count=2, s_per_word=0.3, linger_s=1.5, close_s=1.0)
STYLES = {PLAIN: Style(), "netflix": _NETFLIX, "bbc": _BBC}


def style_in(name: str, language: str | None) -> Style:
    """Return a style as it is for subtitles in a language."""
    style = STYLES[name]
    if language is None or language not in style.in_language:
        return style
    width, chars_per_s = style.in_language[language]
    return replace(style, max_line_width=width, chars_per_s=chars_per_s)
