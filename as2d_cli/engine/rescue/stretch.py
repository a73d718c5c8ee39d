"""Ways to hear a stretch of which more is said than written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from as2d_cli.audio.windows import quietest_place
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples, Span, Word

WORD_S = 1.0
"""Of a stretch, a word that is written already takes so much, at either end."""
_SEARCH_S = (0.2, 1.6)
"""How far from that end the pause behind such a word, or before it, is looked for."""
_LEAST_WORDS = 2
"""A single new word is rather a guess, or part of the word beside it."""
_TELLING_LETTERS = 5
"""A word so long that is heard anew is the same one; shorter ones come again by chance."""
_MOST_KEPT = 2
"""More words that are all too long are slow speech, or song, which fills its stretch: none is beside it."""


@dataclass(frozen=True, slots=True)
class Way:
    """What is heard of a stretch, and where in it the words go that are written already."""

    heard: Span
    kept: Span | None
    """None: they are replaced."""


def ways(part: Samples, n_words: int) -> Iterator[Way]:
    """Yield the ways to hear a stretch: behind its words, before them, as a whole."""
    length_s = len(part) / SAMPLE_RATE_HZ
    if 0 < n_words <= _MOST_KEPT:
        near, far = (int(second * SAMPLE_RATE_HZ) for second in _SEARCH_S)
        head_s = quietest_place(part, near, far) / SAMPLE_RATE_HZ
        tail_s = quietest_place(part, len(part) - far, len(part) - near) / SAMPLE_RATE_HZ
        yield Way(Span(head_s, length_s), Span(0.0, head_s))
        yield Way(Span(0.0, tail_s), Span(tail_s, length_s))
    yield Way(Span(0.0, length_s), None)


def put_at(words: Sequence[Word], place: Span) -> tuple[Word, ...]:
    """Return `words` with their times drawn together to `place`."""
    begin_s, end_s = words[0].start_s, words[-1].end_s
    scale = (place.end_s - place.start_s) / (end_s - begin_s)
    return tuple(
        replace(
            word,
            start_s=place.start_s + scale * (word.start_s - begin_s),
            end_s=place.start_s + scale * (word.end_s - begin_s),
        )
        for word in words
    )


def says_more(new: Sequence[Word], kept: Sequence[Word], way: Way) -> bool:
    """Tell whether `new` words, heard in this way, add anything to those that are written already."""
    if way.kept is None:
        return len(new) >= len(kept) + _LEAST_WORDS
    count = len(kept) + _LEAST_WORDS  # a word may be heard in two pieces, and with a little before it
    beside = new[:count] if way.kept.start_s < way.heard.start_s else new[-count:]
    telling = [word for word in kept if len(_letters([word])) >= _TELLING_LETTERS]
    again = any(_letters(words) in _letters(beside) for words in (kept, *([word] for word in telling)))
    return len(new) >= _LEAST_WORDS and not again


def _letters(words: Sequence[Word]) -> str:
    return "".join(letter for word in words for letter in word.text.casefold() if letter.isalnum())
