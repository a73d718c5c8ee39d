"""What runs saw of a drafter with its target: how often its tokens were right, and how long texts were."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from as2d_cli.decoding import Hazard
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import Request, Task, WindowResult

NOTHING_TRIED = tuple(Hazard().to_counts())
LEAST_TRIALS = 50
"""Draft tokens put to the test before a run says anything about a drafter."""
_MOST_TRIALS = 20_000.0
"""Beyond, older ones count for less: a drafter may be given other speech."""
_MOST_LENGTHS = 64
_MOST_TOKENS = 100_000
_WHOLE_S = 20.0
"""Shorter windows say nothing about how long a text of 30 s is."""
MOST_KINDS = 64
"""Kinds of work that are kept, the latest ones."""
_MOVED = 0.03
"""By how much a rate must differ to make other predictions worth their time."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Counts of a `Hazard`, and how many tokens the texts of whole windows had, the latest last."""

    counts: tuple[float, ...] = NOTHING_TRIED
    lengths: tuple[int, ...] = ()
    last_at: float = 0.0
    """When it was seen last, seconds since the epoch."""

    @property
    def hazard(self) -> Hazard:
        """How likely the next draft token is right, by the number of right ones just before it."""
        return Hazard(self.counts)

    @property
    def trials(self) -> float:
        """Draft tokens that were put to the test."""
        return sum(self.counts[: len(self.counts) // 2])

    @property
    def is_telling(self) -> bool:
        """Whether it says something about the drafter."""
        return self.trials >= LEAST_TRIALS

    def __add__(self, later: Seen) -> Seen:
        """Return both together, with the older counts fading where there are very many."""
        fading = min(1.0, max(0.0, _MOST_TRIALS - later.trials) / self.trials) if self.trials else 1.0
        counts = tuple(fading * old + new for old, new in zip(self.counts, later.counts, strict=True))
        return Seen(counts, (*self.lengths, *later.lengths)[-_MOST_LENGTHS:], later.last_at or self.last_at)

    def differs(self, other: Seen) -> bool:
        """Tell whether predictions by the one are another than by the other."""
        pairs = zip(self.hazard.rates, other.hazard.rates, strict=True)
        return any(abs(one - two) > _MOVED for one, two in pairs)


def read_seen(raw: object) -> Seen:
    """Return what was stored as plain values. Raises `ValueError` for what cannot have been seen."""
    if not isinstance(raw, Mapping) or raw.keys() != {"counts", "lengths", "last_at"}:
        raise ValueError("no counts and lengths of texts, or not when they were seen")
    counts, lengths, last_at = raw["counts"], raw["lengths"], raw["last_at"]
    if type(last_at) is not float or not 0 <= last_at < inf:
        raise ValueError(f"{last_at!r} is no time")
    if not isinstance(counts, list) or not all(type(count) in (int, float) for count in counts):
        raise ValueError("the counts of draft tokens are no numbers")
    if not isinstance(lengths, list) or not all(
        type(length) is int and 0 < length < _MOST_TOKENS for length in lengths
    ):
        raise ValueError("the lengths of texts are no numbers of tokens")
    try:
        Hazard(counts)
    except DecodeError as error:
        raise ValueError(error.message) from error
    return Seen(tuple(map(float, counts)), tuple(lengths[-_MOST_LENGTHS:]), last_at)


def name_of(task: Task, language: str | None) -> str:
    """Return what a kind of work goes by; without a language, in all of them together."""
    return f"{task}/{language or ''}"


class Sightings:
    """Collects what one run sees of its drafter."""

    def __init__(self) -> None:
        self._kinds: dict[str, Seen] = {}

    def add(self, request: Request, result: WindowResult, audio_s: float) -> None:
        """Note a decoded window with so much audio."""
        stats = result.stats
        counts = tuple(map(float, (*stats.trials, *stats.right))) or NOTHING_TRIED
        length = (stats.tokens,) if audio_s >= _WHOLE_S and 0 < stats.tokens < _MOST_TOKENS else ()
        task = request.in_language(result.language).task
        for name in {name_of(task, result.language), name_of(task, None)}:
            self._kinds[name] = self._kinds.get(name, Seen()) + Seen(counts, length, time.time())

    def added_to(self, earlier: Mapping[str, Seen]) -> dict[str, Seen]:
        """Return what was seen earlier and in this run, by kind of work, where it is enough to tell."""
        found = dict(earlier)
        for name, seen in self._kinds.items():
            if seen.is_telling:
                found[name] = found.pop(name, Seen()) + seen
        return dict(list(found.items())[-MOST_KINDS:])


def quantiles(lengths: Sequence[int], count: int) -> tuple[int, ...]:
    """Return so many lengths, evenly from the short ones to the long ones."""
    ordered = sorted(lengths)
    return tuple(ordered[(2 * place + 1) * len(ordered) // (2 * count)] for place in range(count))
