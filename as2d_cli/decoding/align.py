"""Finds where in the draft the target now is, after draft and target have gone different ways.

A draft is never rewritten, so after a correction the question is which draft token corresponds to
the next one of the target. A wrong answer costs time only: every candidate is verified.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
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


class _DraftText:
    """The draft so far, and where its n-grams end."""

    def __init__(self, gram_sizes: Sequence[int]) -> None:
        self.tokens: list[int] = []
        self.is_complete = False
        self._gram_sizes = gram_sizes
        self._ends: dict[tuple[int, ...], list[int]] = {}

    def extend(self, ids: Sequence[int]) -> None:
        """Take newly published tokens."""
        for token in ids:
            self.tokens.append(token)
            for size in self._gram_sizes:
                if len(self.tokens) >= size:
                    self._ends.setdefault(tuple(self.tokens[-size:]), []).append(len(self.tokens))

    def places_after(self, gram: Sequence[int]) -> list[int]:
        """Return the indices just after each occurrence of an n-gram of an indexed size, ascending."""
        return self._ends.get(tuple(gram), [])

    def agreement(self, place: int, committed: Sequence[int]) -> int:
        """Count equal tokens before `place` and at the committed end, `MAX_SUFFIX` at most."""
        limit = min(place, len(committed), MAX_SUFFIX)
        length = 0
        while length < limit and self.tokens[place - 1 - length] == committed[-1 - length]:
            length += 1
        return length


@dataclass(slots=True)
class _Position:
    """Where the target is in the draft."""

    cursor: int | None = 0
    """Index of the draft token that corresponds to the next one to be compared; None: lost."""
    owed: int = 0
    """Last committed tokens not compared yet: they correspond to the draft from `cursor` on."""
    run: int = 0
    """Committed tokens just before the cursor that the draft had right, in a row."""
    shift: int = 0
    """Draft index minus committed index if all errors from here on were substitutions."""
    is_provisional: bool = False
    """Whether it was looked for with less draft than wanted."""

    def expected(self, committed: Sequence[int]) -> int:
        """Return where an error-free draft would have the next token."""
        return len(committed) + self.shift


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A place that certainly corresponds: from there on committed text and draft are compared."""

    committed: int = 0
    draft: int = 0


class Aligner:
    """Follows the target through one window's draft.

    Modes: `hybrid` is local edit distance from the last trusted place, and when that finds no
    agreement for a while, a jump to the last committed trigram wherever it is in the draft;
    `edit` is without the jump; `ngram` resumes after the shortest suffix of the committed text
    that occurs exactly once in the draft (aggressive decoding); `none` gives up at the first error.

    States, beginning with FOLLOWING::

                           the draft ends before the text
            FOLLOWING ----------------------------------------> OWING
             ^  |  ^                                             | |
             |  |  +--------- the draft grows and agrees --------+ |
             |  | a token differs                                  | the draft grows and differs
       found |  v                                                  |
            realign <----------------------------------------------+
             |  ^
        none |  | more text or draft
             v  |
            LOST

    FOLLOWING owes nothing: text and draft are compared up to the cursor. OWING has its cursor at the end of
    the draft and counts the tokens that wait; that is not going astray, so `run` stays, unless the draft is
    complete. LOST has no cursor: `none` stays so, `ngram` looks again at every step, the others always find
    a place. After `PATIENCE` steps without agreement `hybrid` jumps, from either of the upper states.

    Raises DecodeError if the mode does not exist.
    """

    def __init__(self, mode: AlignMode = "hybrid") -> None:
        if mode not in _GRAM_SIZES:
            raise DecodeError(f"no alignment {mode!r}", f"choose one of: {', '.join(get_args(AlignMode))}")
        self._mode = mode
        self._draft = _DraftText(_GRAM_SIZES[mode])
        self._committed: list[int] = []
        self._at = _Position()
        self._anchor = _Anchor()
        self._steps_astray = 0

    @property
    def seen(self) -> int:
        """Draft tokens fed so far."""
        return len(self._draft.tokens)

    @property
    def cursor(self) -> int | None:
        """Index of the next draft token to propose (`seen` if it is not there yet), None when lost."""
        return self._at.cursor

    @property
    def run(self) -> int:
        """Committed tokens just before the cursor that the draft had right, in a row."""
        return self._at.run

    def feed(self, ids: Sequence[int], *, complete: bool) -> None:
        """Take newly published draft tokens; `complete` says that no more will come."""
        self._draft.is_complete = complete
        if not ids:
            return
        self._draft.extend(ids)
        if self._at.is_provisional and self._at.run < SYNC_RUN:
            self._realign()
        else:
            self._settle()

    def observe(self, tokens: Sequence[int]) -> None:
        """Take newly committed tokens."""
        at, run_before = self._at, self._at.run
        self._committed.extend(tokens)
        at.owed += len(tokens)
        self._settle()
        is_waiting = at.owed > 0 and not self._draft.is_complete
        if at.owed and not is_waiting:
            at.run = 0  # the draft is used up; what it had right before says nothing any more
        if at.run >= SYNC_RUN or is_waiting:
            self._steps_astray = 0
        elif at.run <= run_before:
            self._steps_astray += 1
        if self._mode == "hybrid" and self._steps_astray >= PATIENCE:
            self._jump()

    def _settle(self) -> None:
        """Compare owed tokens with the draft as far as it goes."""
        at, draft = self._at, self._draft.tokens
        if at.cursor is None:
            self._realign()
            return
        while at.owed and at.cursor < len(draft):
            if draft[at.cursor] != self._committed[-at.owed]:
                at.shift = at.cursor + at.owed - len(self._committed)
                self._realign()
                return
            at.cursor += 1
            at.owed -= 1
            at.run += 1
        if at.run >= ANCHOR_RUN:
            self._anchor = _Anchor(len(self._committed) - at.owed, at.cursor)

    def _realign(self) -> None:
        """Find the place of the next token anew, by the mode's rule."""
        self._at.owed = 0
        if self._mode == "none":
            self._lose()
        elif self._mode == "ngram":
            self._resume_after_unique()
        else:
            self._resume_after_nearest()

    def _resume_after_nearest(self) -> None:
        """Resume where the draft, from the anchor on, is nearest to what has been committed since."""
        draft, start = self._draft.tokens, self._anchor.draft
        pattern = self._committed[self._anchor.committed :]
        wanted = start + len(pattern) + WINDOW
        expected = self._at.expected(self._committed)
        is_cut = len(pattern) > MAX_PATTERN
        if is_cut:
            pattern = pattern[-MAX_PATTERN:]
            start = min(max(start, expected - MAX_PATTERN - WINDOW), len(draft))
        costs = end_costs(pattern, draft[start:wanted], free_start=is_cut)
        last = self._committed[-1]
        _, _, _, end = min(
            # On equal cost a place whose draft token is the one just committed, then the nearest.
            (cost, end == start or draft[end - 1] != last, abs(end - expected), end)
            for end, cost in enumerate(costs, start)
        )
        self._at.is_provisional = len(draft) < wanted
        self._resume_at(end)

    def _resume_after_unique(self) -> None:
        """Resume after the shortest suffix of the committed text that occurs in the draft once."""
        self._lose()
        for size in _GRAM_SIZES[self._mode]:
            places = self._draft.places_after(self._committed[-size:])
            if len(places) == 1:
                self._resume_at(places[0])
            if len(places) <= 1:
                return

    def _jump(self) -> None:
        """Resume after the longest suffix of the committed text found anywhere in the draft."""
        at = self._at
        current = at.cursor if at.cursor is not None else at.expected(self._committed)
        places = self._draft.places_after(self._committed[-3:])
        first = max(bisect_left(places, current) - _MAX_PLACES // 2, 0)
        ranked = sorted(
            (-self._draft.agreement(place, self._committed), abs(place - current), place)
            for place in places[first : first + _MAX_PLACES]
        )
        if not ranked:
            return
        length, distance, place = ranked[0]
        is_ambiguous = len(ranked) > 1 and ranked[1][0] == length
        if not (is_ambiguous and distance > WINDOW):
            self._resume_at(place)
            self._anchor = _Anchor(len(self._committed), place)
            at.owed = self._steps_astray = 0

    def _lose(self) -> None:
        self._at.cursor, self._at.run = None, 0

    def _resume_at(self, place: int) -> None:
        """Expect the next token at `place`."""
        self._at.cursor = place
        self._at.run = self._draft.agreement(place, self._committed)
        self._at.shift = place - len(self._committed)
        if self._at.run >= ANCHOR_RUN:
            self._anchor = _Anchor(len(self._committed), place)
