"""Serial speculative decoding: the drafter writes while the target waits, and is told every correction.

These are the methods AS2D is compared with, as draft sources for the very same decode loop:
`decode(session, draft, draft, WHOLE_DRAFT, ...)` with a `SerialDraft` as draft and as alignment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from as2d_cli.bench.baselines.coupled import CoupledDrafter
from as2d_cli.decoding.controller import FixedBudget
from as2d_cli.decoding.protocols import END, DraftToken
from as2d_cli.decoding.stream import Clock
from as2d_cli.decoding.verify import count_accepted
from as2d_cli.domain.errors import DecodeError

WHOLE_DRAFT = FixedBudget(1_000_000)
"""The policy of serial modes: how much is drafted decides how much is verified."""

_ASP_TOKENS, _ASP_THRESHOLD = 24, 0.4


class Schedule(Protocol):
    """Decides how long the next draft is."""

    @property
    def tokens(self) -> int:
        """Most tokens of the next draft."""

    @property
    def threshold(self) -> float:
        """A token that the drafter gives less probability than this is the last of its draft."""

    def learn(self, drafted: int, accepted: int) -> None:
        """Note how many tokens of the last draft were right."""


@dataclass(frozen=True, slots=True)
class FixedSchedule:
    """Always the same length, unless the drafter is in doubt. The token in doubt is verified too."""

    tokens: int
    threshold: float = 0.0

    def learn(self, drafted: int, accepted: int) -> None:
        """Nothing to learn."""


class AdaptiveSchedule:
    """Two tokens more after a draft that was right throughout, one less after any other, at least one.

    This is the heuristic schedule of Hugging Face's assisted generation.
    """

    threshold = 0.0

    def __init__(self, tokens: int = 5) -> None:
        self.tokens = tokens

    def learn(self, drafted: int, accepted: int) -> None:
        """Adapt to the last draft; an empty one says nothing."""
        if drafted:
            self.tokens = self.tokens + 2 if accepted == drafted else max(1, self.tokens - 1)


class SerialDraft:
    """A draft that is always the committed text and a continuation of it by a coupled drafter.

    It is also its own alignment: position i of the draft is position i of the text. With `recycle`,
    the tail after a rejected token is kept, and where the drafter comes back to it after the
    correction (at the same place, or one off), the rest of it is taken without drafter passes.
    """

    complete = True
    """While the target is at work the drafter is not."""

    def __init__(
        self,
        drafter: CoupledDrafter,
        schedule: Schedule,
        *,
        end_id: int,
        recycle: bool = False,
        clock: Clock = time.perf_counter,
    ) -> None:
        """Propose `end_id` where the drafter ends its text."""
        self.run = 0
        """Draft tokens just before the cursor that were right, in a row."""
        self.drafted = 0
        """Tokens proposed so far, recycled ones included."""
        self.recycled = 0
        """Tokens proposed without the drafter having to write them again."""
        self.ms = 0.0
        """Time that the drafter took by `clock`."""
        self._drafter, self._schedule, self._end_id = drafter, schedule, end_id
        self._recycle, self._clock = recycle, clock
        self._committed: list[int] = []
        self._draft: list[DraftToken] = []
        self._tail: Sequence[DraftToken] = ()
        self._wanted = True  # the text has grown since the last draft
        self._cancelled = False

    def snapshot(self) -> int:
        """Let the drafter write; return the number of tokens, those of the committed text included."""
        if self._wanted and not self._cancelled:
            self._wanted = False
            began = self._clock()
            self._draft = self._write()
            self.ms += (self._clock() - began) * 1e3
            self.drafted += len(self._draft)
        return self.seen

    def ids(self, start: int, stop: int) -> list[int]:
        """Copy of the tokens in [start, stop)."""
        return [*self._committed, *_ids(self._draft)][start:stop]

    def cancel(self) -> None:
        """Write no more."""
        self._cancelled = True

    @property
    def seen(self) -> int:
        """Number of tokens, those of the committed text included."""
        return len(self._committed) + len(self._draft)

    @property
    def cursor(self) -> int:
        """Index of the first token that is not committed."""
        return len(self._committed)

    def feed(self, ids: Sequence[int], *, complete: bool) -> None:
        """Nothing to do: the draft is known here."""

    def observe(self, tokens: Sequence[int]) -> None:
        """Take newly committed tokens; the drafter goes on after them."""
        right = count_accepted(tokens, _ids(self._draft)[: len(tokens)])
        all_right = right == len(self._draft)
        self._schedule.learn(len(self._draft), right)
        self.run = self.run + right if all_right else 0
        self._tail = self._draft[right + 1 :] if self._recycle else ()
        self._committed += tokens
        self._draft = []
        self._wanted = True

    def _write(self) -> list[DraftToken]:
        self._drafter.sync(self._committed)
        draft: list[DraftToken] = []
        while len(draft) < self._schedule.tokens:
            token = self._drafter.step()
            if token is None:
                break
            draft.append(DraftToken(self._end_id, token.probability) if token.id == END else token)
            if self._take_back(draft):
                self._drafter.sync([*self._committed, *_ids(draft)])
            if self._is_last(draft[-1]):
                break
        return draft

    def _take_back(self, draft: list[DraftToken]) -> bool:
        """Append the rest of the rejected tail if the draft has just come back to it."""
        if self._is_last(draft[-1]):
            return False
        rest = _rest(self._tail, len(draft) - 1, draft[-1].id)[: self._schedule.tokens - len(draft)]
        before = len(draft)
        for token in rest:
            draft.append(token)
            if self._is_last(token):
                break
        self.recycled += len(draft) - before
        if rest:
            self._tail = ()
        return bool(rest)

    def _is_last(self, token: DraftToken) -> bool:
        return token.id == self._end_id or token.probability < self._schedule.threshold


def _rest(tail: Sequence[DraftToken], index: int, token: int) -> Sequence[DraftToken]:
    """Return what follows `token` in `tail`, looked for at `index` and then one off."""
    for at in (index, index - 1, index + 1):
        if 0 <= at < len(tail) and tail[at].id == token:
            return tail[at + 1 :]
    return ()


def _ids(tokens: Sequence[DraftToken]) -> list[int]:
    return [token.id for token in tokens]


_SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "sd-2": lambda: FixedSchedule(2),
    "sd-4": lambda: FixedSchedule(4),
    "sd-8": lambda: FixedSchedule(8),
    "sd-adaptive": AdaptiveSchedule,
    "specasr-asp": lambda: FixedSchedule(_ASP_TOKENS, _ASP_THRESHOLD),
}
SERIAL_MODES = tuple(_SCHEDULES)
"""Plain speculative decoding by draft length, with a length that adapts, and SpecASR's truncated and
recycled single-sequence drafts. SpecASR's token tree is left out: MNN's decoders have causal masks only."""


def new_schedule(mode: str) -> Schedule:
    """Return a new schedule of a serial mode, to be kept from window to window. Raises `DecodeError`."""
    if mode not in _SCHEDULES:
        raise DecodeError(f"no serial mode {mode!r}", f"choose one of: {', '.join(SERIAL_MODES)}")
    return _SCHEDULES[mode]()


def serial_draft(
    mode: str,
    drafter: CoupledDrafter,
    *,
    end_id: int,
    schedule: Schedule | None = None,
    clock: Clock = time.perf_counter,
) -> SerialDraft:
    """Return the draft source of a serial mode for one window. Raises `DecodeError` for an unknown mode."""
    schedule = schedule or new_schedule(mode)
    return SerialDraft(drafter, schedule, end_id=end_id, recycle=mode == "specasr-asp", clock=clock)
