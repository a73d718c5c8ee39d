"""Which part of a transcript a question is put to, and which part an answer rests on. Pure functions.

Both are decided by words in common, rare ones counting for more (inverse document frequency, the documents
being the transcript's own segments). Words count as the same if they begin alike, a last s apart, which
finds most inflections in most languages; scripts written without spaces are compared by pairs of characters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from as2d_cli.domain.types import Segment, Span

GAP = "\n[...]\n"
"""Stands in a passage where sentences of the recording were left out."""
NOT_THERE = "not in the recording"
"""How an answer begins that says that there is none."""
_STEM = 5
_NEIGHBOUR = 0.5
"""A segment counts for half as much by what stands next to it as by what it says itself."""
_SUPPORT = 0.6
"""An answer rests on the segments that score at least this share of what the best one does."""
_MAX_SPANS = 3
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Passage:
    """What of a transcript goes to the model, in the order of the recording."""

    segments: tuple[Segment, ...]
    text: str
    is_whole: bool
    """Whether nothing was left out."""


def choose(segments: Sequence[Segment], question: str, room: int, count: Callable[[str], int]) -> Passage:
    """Return the whole transcript if `count` says that it fits into `room`, else what matters to `question`.

    Then segments are taken by the words they share with the question, and their neighbours likewise, until
    the room is used up; of equal ones the earlier first. At least one is taken.
    """
    whole = _text(segments, range(len(segments)))
    if not segments or count(whole) <= room:
        return Passage(tuple(segments), whole, is_whole=True)
    scores = _near(_scores(segments, terms(question)))
    chosen: list[int] = []
    left = room
    for index in sorted(range(len(segments)), key=lambda index: (-scores[index], index)):
        cost = count(f" {segments[index].text}") + count(GAP)
        if chosen and cost > left:
            continue
        chosen.append(index)
        left -= cost
    chosen.sort()
    return Passage(tuple(segments[index] for index in chosen), _text(segments, chosen), is_whole=False)


def rests_on(passage: Passage, question: str, answer: str) -> tuple[Span, ...]:
    """Return where in the recording an answer comes from: at most three stretches, in order.

    What shares most with the answer, and with the question; all of the passage if nothing does, as with an
    answer in another language. Nothing if the answer says that there is none.
    """
    if not passage.segments or not is_found(answer):
        return ()
    by_answer = _scores(passage.segments, terms(answer))
    by_question = _scores(passage.segments, terms(question))
    scores = [2 * mine + other for mine, other in zip(by_answer, by_question, strict=True)]
    best = max(scores)
    if not best:
        return (Span(passage.segments[0].start_s, passage.segments[-1].end_s),)
    ranked = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    kept = sorted(index for index in ranked[:_MAX_SPANS] if scores[index] >= _SUPPORT * best)
    return _joined([passage.segments[index] for index in kept])


def is_found(answer: str) -> bool:
    """Whether an answer says something else than that there is none."""
    return not answer.strip(" \"'.").casefold().startswith(NOT_THERE)


def terms(text: str) -> frozenset[str]:
    """Return what of a text is compared.

    >>> sorted(terms("Operating in 40 states"))
    ['40', 'in', 'opera', 'state']
    """
    found: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        unspaced = _UNSPACED.findall(word)
        found |= {run[at : at + 2] for run in unspaced for at in range(max(len(run) - 1, 1))}
        if not unspaced:
            found.add(word[:_STEM].rstrip("s") or word)
    return frozenset(found)


def _scores(segments: Sequence[Segment], wanted: frozenset[str]) -> list[float]:
    """Return for each segment the weight of the wanted terms that it has."""
    have = [terms(segment.text) for segment in segments]
    frequency = Counter(term for one in have for term in one & wanted)
    weight = {term: math.log(1 + len(segments) / times) for term, times in frequency.items()}
    return [math.fsum(weight[term] for term in one & wanted) for one in have]


def _near(scores: Sequence[float]) -> list[float]:
    padded = [0.0, *scores, 0.0]
    return [padded[at] + _NEIGHBOUR * max(padded[at - 1], padded[at + 1]) for at in range(1, len(padded) - 1)]


def _text(segments: Sequence[Segment], chosen: Sequence[int]) -> str:
    """Join the chosen segments, a mark where some were left out."""
    parts: list[str] = []
    after = 0
    for index in chosen:
        parts += [GAP if index > after else " ", segments[index].text.strip()]
        after = index + 1
    return "".join([*parts, GAP if after < len(segments) else ""]).strip(" ")


def _joined(segments: Sequence[Segment]) -> tuple[Span, ...]:
    """Return where segments lie, those that touch as one."""
    spans: list[Span] = []
    for one in segments:
        if spans and one.start_s - spans[-1].end_s < 1.0:
            spans[-1] = Span(spans[-1].start_s, one.end_s)
        else:
            spans.append(Span(one.start_s, one.end_s))
    return tuple(spans)
