"""Finds where in the draft the target now is, after draft and target have gone different ways.

A draft is never rewritten, so after a correction the question is which draft token corresponds to
the next one of the target. A wrong answer costs time only: every candidate is verified.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, get_args

from as2d_cli.decoding.distance import end_costs
from as2d_cli.domain.errors import DecodeError

AlignMode = Literal["hybrid", "edit", "ngram", "none"]

WINDOW = 24
"""Draft tokens looked at beyond the place where an error-free draft would be."""
MAX_PATTERN = 64
"""Committed tokens compared at most, so that a long time without agreement stays cheap."""
ANCHOR_RUN = 4
"""Equal tokens in a row that make a place trusted for good: comparison starts there later."""
SYNC_RUN = 3
"""Equal tokens in a row that count as agreement."""
PATIENCE = 3
"""Steps without agreement before the whole draft is searched for the last committed trigram."""
MAX_SUFFIX = 8
_MAX_PLACES = 32
_GRAM_SIZES: dict[AlignMode, tuple[int, ...]] = {"hybrid": (3,), "edit": (), "ngram": (1, 2, 3), "none": ()}


class Aligner:
    """Follows the target through one window's draft.

    Modes: `hybrid` is local edit distance from the last trusted place, and when that finds no
    agreement for a while, a jump to the last committed trigram wherever it is in the draft;
    `edit` is without the jump; `ngram` resumes after the shortest suffix of the committed text
    that occurs exactly once in the draft (aggressive decoding); `none` gives up at the first error.

    Running out of draft is not going astray: committed tokens that the draft has not reached yet
    are owed, and compared as it grows.

    Raises DecodeError if the mode does not exist.
    """

    def __init__(self, mode: AlignMode = "hybrid") -> None:
        if mode not in _GRAM_SIZES:
            raise DecodeError(f"no alignment {mode!r}", f"choose one of: {', '.join(get_args(AlignMode))}")
        self._mode = mode
        self._draft: list[int] = []
        self._committed: list[int] = []
        self._grams: dict[tuple[int, ...], list[int]] = {}  # n-gram -> indices just after it, ascending
        self._next: int | None = 0
        self._owed = 0  # committed tokens that correspond to draft tokens from `_next` on
        self._anchor = (0, 0)  # (committed, draft) indices that certainly correspond
        self._shift = 0  # draft index minus committed index if errors were all substitutions
        self._unsynced = 0
        self._short = False  # the last comparison wanted more draft than there was
        self._complete = False
        self.run = 0
        """Committed tokens just before the cursor that the draft had right, in a row."""

    @property
    def seen(self) -> int:
        """Draft tokens fed so far."""
        return len(self._draft)

    @property
    def cursor(self) -> int | None:
        """Index of the next draft token to propose (`seen` if it is not there yet), None when lost."""
        return self._next

    def feed(self, ids: Sequence[int], *, complete: bool) -> None:
        """Take newly published draft tokens; `complete` says that no more will come."""
        self._complete = complete
        for token in ids:
            self._draft.append(token)
            for size in _GRAM_SIZES[self._mode]:
                if len(self._draft) >= size:
                    self._grams.setdefault(tuple(self._draft[-size:]), []).append(len(self._draft))
        if not ids:
            return
        if self._short and self.run < SYNC_RUN:
            self._realign()
        else:
            self._settle()

    def observe(self, tokens: Sequence[int]) -> None:
        """Take newly committed tokens."""
        before = self.run
        self._committed.extend(tokens)
        if self._next is None:
            self._realign()
        else:
            self._owed += len(tokens)
            self._settle()
            if self._owed and self._complete:
                self.run = 0  # the draft is used up; what it had right before says nothing any more
        if self.run >= SYNC_RUN or (self._owed and not self._complete):
            self._unsynced = 0  # agreeing, or the draft has simply not come this far
        elif self.run <= before:
            self._unsynced += 1
        if self._mode == "hybrid" and self._unsynced >= PATIENCE:
            self._jump()

    def _settle(self) -> None:
        """Compare owed tokens with the draft as far as it goes."""
        if self._next is None:
            self._realign()
            return
        while self._owed and self._next < len(self._draft):
            if self._draft[self._next] != self._committed[-self._owed]:
                self._shift = self._next + self._owed - len(self._committed)
                self._realign()
                return
            self._next += 1
            self._owed -= 1
            self.run += 1
        if self.run >= ANCHOR_RUN:
            self._anchor = (len(self._committed) - self._owed, self._next)

    @property
    def _expected(self) -> int:
        return len(self._committed) + self._shift

    def _realign(self) -> None:
        if self._mode == "none":
            self._next, self.run = None, 0
        elif self._mode == "ngram":
            self._resume_after_unique()
        else:
            self._resume_after_nearest()
        self._owed = 0

    def _resume_after_nearest(self) -> None:
        """Resume where the draft, from the anchor on, is nearest to what has been committed since."""
        committed_at, start = self._anchor
        pattern = self._committed[committed_at:]
        wanted = start + len(pattern) + WINDOW
        cut = len(pattern) > MAX_PATTERN
        if cut:
            pattern = pattern[-MAX_PATTERN:]
            start = min(max(start, self._expected - MAX_PATTERN - WINDOW), len(self._draft))
        costs = end_costs(pattern, self._draft[start:wanted], free_start=cut)
        last, expected = self._committed[-1], self._expected
        _, _, _, end = min(
            # On equal cost a place whose draft token is the one just committed, then the nearest.
            (cost, end == start or self._draft[end - 1] != last, abs(end - expected), end)
            for end, cost in enumerate(costs, start)
        )
        self._short = len(self._draft) < wanted
        self._go(end)

    def _resume_after_unique(self) -> None:
        self._next, self.run = None, 0
        for size in _GRAM_SIZES[self._mode]:
            places = self._grams.get(tuple(self._committed[-size:]), [])
            if len(places) == 1:
                self._go(places[0])
            if len(places) <= 1:
                return

    def _jump(self) -> None:
        """Resume after the longest suffix of the committed text found anywhere in the draft."""
        places = self._grams.get(tuple(self._committed[-3:]), [])
        here = self._next if self._next is not None else self._expected
        at = max(bisect_left(places, here) - _MAX_PLACES // 2, 0)
        ranked = sorted(
            (-self._suffix(place), abs(place - here), place) for place in places[at : at + _MAX_PLACES]
        )
        if not ranked:
            return
        length, distance, place = ranked[0]
        ambiguous = len(ranked) > 1 and ranked[1][0] == length
        if not (ambiguous and distance > WINDOW):
            self._go(place)
            self._owed = self._unsynced = 0
            self._anchor = (len(self._committed), place)

    def _go(self, place: int) -> None:
        self._next = place
        self.run = self._suffix(place)
        self._shift = place - len(self._committed)
        if self.run >= ANCHOR_RUN:
            self._anchor = (len(self._committed), place)

    def _suffix(self, place: int) -> int:
        """Count equal tokens before `place` in the draft and at the committed end, 8 at most."""
        limit = min(place, len(self._committed), MAX_SUFFIX)
        length = 0
        while length < limit and self._draft[place - 1 - length] == self._committed[-1 - length]:
            length += 1
        return length
