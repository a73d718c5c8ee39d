"""Joins what a model made of each window into the text and the timed segments of a file. Pure functions.

`subtitles` lays segments out in lines.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from as2d_cli.domain.types import Segment, Span, WindowResult, Word

_SENTENCE_ENDS = frozenset(".?!…。？！．｡؟۔।॥")  # noqa: RUF001
_CLAUSE_ENDS = frozenset(",;:—–、，；：､،؛")  # noqa: RUF001
_CLOSING = "\"'”’»)]}」』）】》〉"  # noqa: RUF001
_TITLES = frozenset({"mr.", "mrs.", "ms.", "dr.", "st.", "prof.", "vs."})
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""Scripts written without spaces between words, by the first word of their characters' names. Not Hangul."""


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """When to end a segment. The maxima hold for every segment of more than one word."""

    max_words: int = 30
    max_s: float = 10.0
    pause_s: float = 0.8
    """A silence between words at least this long ends a segment, unless it sets off a fragment."""
    fragment_s: float = 1.0
    """What is shorter cannot be read as a subtitle, and stays with the rest of its sentence."""
    hesitation_s: float = 3.0
    """But not across a silence of this length."""


DEFAULT_LIMITS = SegmentLimits()


class Segmenter:
    """Makes the segments of a file while its windows come in, each as soon as later words cannot change it.

    Each word of each window is in one segment, in order. Times are seconds in the file and never go back:
    0 <= start <= end <= `duration_s`; a model's times are trusted only as far as that. A segment ends at the
    end of a sentence, at a long pause (but no pause leaves a word alone) and where `limits` say, if possible
    after a comma. A window that has text but no words makes one segment.
    """

    def __init__(self, duration_s: float = math.inf, limits: SegmentLimits = DEFAULT_LIMITS) -> None:
        """Begin a file of `duration_s`; without it, the windows' own ends bound the times."""
        self._duration_s, self._limits = duration_s, limits
        self._sentence: list[Word] = []  # the last one, which may go on in the next window
        self._given = 0  # its words that are in segments already
        self._now_s = 0.0

    def add(self, window: Span, result: WindowResult) -> list[Segment]:
        """Take the next window; return the segments that are complete now."""
        if not result.words:
            return [*self.finish(), *self._untimed(window, result)]
        words = list(self._sentence)
        for word in _set_off(result.words):
            start_s, self._now_s = _within(word, window, self._now_s, self._duration_s)
            words.append(replace(word, start_s=start_s, end_s=self._now_s))
        # All sentences but the last are complete: as it grows, it can only cease to be a fragment that they
        # would take in.
        *complete, self._sentence = _sentences(words, self._limits)
        return [*self._rest_of(complete), *self._pieces_of_last()]

    @property
    def begun_s(self) -> float:
        """Where the next segment starts, as far as that is known, else infinity."""
        return self._sentence[self._given].start_s if self._given < len(self._sentence) else math.inf

    def finish(self) -> list[Segment]:
        """Return the segments that remain: nothing follows."""
        rest = self._rest_of(_sentences(self._sentence, self._limits))
        self._sentence = []
        return rest

    def _untimed(self, window: Span, result: WindowResult) -> Iterator[Segment]:
        """Yield the text of a window whose words have no times."""
        text = result.text.strip()
        if text:
            start_s = min(max(self._now_s, window.start_s), self._duration_s)
            self._now_s = min(max(start_s, window.end_s), self._duration_s)
            yield Segment(start_s, self._now_s, text, tokens=result.tokens)

    def _rest_of(self, sentences: Iterable[Sequence[Word]]) -> list[Segment]:
        """Return what is still to be given of complete sentences, the first of them perhaps begun."""
        segments: list[Segment] = []
        for sentence in sentences:
            segments += map(_as_segment, _fitting(sentence[self._given :], self._limits))
            self._given = 0
        return segments

    def _pieces_of_last(self) -> list[Segment]:
        """Return the pieces of the last sentence that are full, whatever follows."""
        segments: list[Segment] = []
        rest = self._sentence[self._given : _sure(self._sentence, self._limits)]
        while (count := _longest(rest, self._limits)) < len(rest):
            count = _best_break(rest, count)
            segments.append(_as_segment(rest[:count]))
            self._given += count
            rest = rest[count:]
        return segments


def _set_off(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words of a window, the first with a space before it if its script has such."""
    for position, word in enumerate(words):
        apart = position or not word.text or starts_word(word)
        yield word if apart else replace(word, text=" " + word.text)


def _within(word: Word, window: Span, earliest_s: float, duration_s: float) -> tuple[float, float]:
    """Return the word's times in the file, inside its window and not before `earliest_s`."""
    latest_s = min(window.end_s, duration_s)
    start_s = min(max(window.start_s + word.start_s, window.start_s, earliest_s), max(latest_s, earliest_s))
    end_s = min(max(window.start_s + word.end_s, start_s), max(latest_s, start_s))
    return start_s, end_s


def _sentences(words: Sequence[Word], limits: SegmentLimits) -> list[list[Word]]:
    """Divide timed words into sentences, or what pauses make of them."""
    return list(_whole(_phrases(words, limits), limits))


def _sure(sentence: Sequence[Word], limits: SegmentLimits) -> int:
    """Return how many of a sentence's words stay in it: a fragment at its end may grow, and leave it."""
    *others, last = _phrases(sentence, limits)
    is_fragment = bool(others) and _length_s(last) < limits.fragment_s
    return len(sentence) - (len(last) if is_fragment else 0)


def _phrases(words: Sequence[Word], limits: SegmentLimits) -> Iterator[Sequence[Word]]:
    """Divide words at the ends of sentences and at pauses."""
    begin = 0
    for end in range(1, len(words)):
        if _silence_s(words[end - 1], words[end]) >= limits.pause_s or _ends(words[end - 1], words[end]):
            yield words[begin:end]
            begin = end
    if words:
        yield words[begin:]


def _whole(phrases: Iterable[Sequence[Word]], limits: SegmentLimits) -> Iterator[list[Word]]:
    """Join fragments to their sentences again; what is too long then is divided at a better place."""
    whole: list[Word] = []
    for phrase in phrases:
        if whole and not _belongs(whole, phrase, limits):
            yield whole
            whole = []
        whole.extend(phrase)
    if whole:
        yield whole


def _belongs(before: Sequence[Word], after: Sequence[Word], limits: SegmentLimits) -> bool:
    """Tell whether one of two phrases is a fragment that the other may take in."""
    return (
        min(_length_s(before), _length_s(after)) < limits.fragment_s
        and _silence_s(before[-1], after[0]) < limits.hesitation_s
        and not _ends(before[-1], after[0])
    )


def _length_s(words: Sequence[Word]) -> float:
    return words[-1].end_s - words[0].start_s


def _silence_s(word: Word, following: Word) -> float:
    return following.start_s - word.end_s


def _ends(word: Word, following: Word) -> bool:
    """Tell whether a sentence ends between two words."""
    text = word.text.strip().rstrip(_CLOSING)
    if text[-1:] not in _SENTENCE_ENDS:
        return False
    if not text[-1].isascii():
        return True
    # "3.14", "e.g. this", "J. Smith", "Dr. Smith": not every full stop ends a sentence.
    begins = following.text[:1].isspace() and not following.text.strip()[:1].islower()
    initial = len(text) == 2 and text[0].isalpha() and text != "I."
    return begins and not (text[-1] == "." and (initial or text.lower() in _TITLES))


def _fitting(words: Sequence[Word], limits: SegmentLimits) -> Iterator[Sequence[Word]]:
    """Divide one sentence into pieces within the limits, as few as the search for a good place allows."""
    while words:
        count = _longest(words, limits)
        if count < len(words):
            count = _best_break(words, count)
        yield words[:count]
        words = words[count:]


def _longest(words: Sequence[Word], limits: SegmentLimits) -> int:
    """Return how many of the first words fit; at least one, if there is any."""
    if not words:
        return 0
    start_s = words[0].start_s
    count = 1
    while count < min(len(words), limits.max_words) and words[count].end_s - start_s <= limits.max_s:
        count += 1
    return count


def _best_break(words: Sequence[Word], count: int) -> int:
    """Return where to end a piece of at most `count` words: after the last clause of its second half.

    Without one, at the longest pause there; never inside what is written as one word.
    """
    places = [n for n in range(max(1, count // 2), count + 1) if starts_word(words[n])] or [count]
    clauses = [n for n in places if words[n - 1].text.rstrip()[-1:] in _CLAUSE_ENDS]
    if clauses:
        return clauses[-1]
    return max(places, key=lambda n: (words[n].start_s - words[n - 1].end_s, n))


def starts_word(word: Word) -> bool:
    """Tell whether a line may begin with `word`: it has a space before it, or its script needs none."""
    return word.text[:1].isspace() or _is_unspaced(word.text[:1])


def ends_clause(word: Word) -> bool:
    """Tell whether a clause or a sentence ends with `word`, by its punctuation."""
    return word.text.strip().rstrip(_CLOSING)[-1:] in _CLAUSE_ENDS | _SENTENCE_ENDS


def _as_segment(words: Sequence[Word]) -> Segment:
    text = "".join(word.text for word in words).strip()
    tokens = tuple(token for word in words for token in word.tokens)
    return Segment(words[0].start_s, words[-1].end_s, text, tuple(words), tokens)


def join_texts(texts: Iterable[str]) -> str:
    """Join the texts of consecutive windows into that of the file.

    One space goes between two windows, none between characters of scripts written without spaces.

    >>> join_texts([" And so,", "", " my fellow Americans."])
    'And so, my fellow Americans.'
    >>> join_texts(["今日は、", "いい天気です。"])
    '今日は、いい天気です。'
    """
    joined = ""
    for text in map(str.strip, texts):
        if joined and text and not (_is_unspaced(joined[-1]) and _is_unspaced(text[0])):
            joined += " "
        joined += text
    return joined


def _is_unspaced(character: str) -> bool:
    """Tell whether `character` (one, or none) belongs to a script without spaces between words."""
    if not character or character.isascii():
        return False
    name = unicodedata.name(character, "")
    return name.startswith((*_UNSPACED, "IDEOGRAPHIC", "FULLWIDTH", "HALFWIDTH"))
