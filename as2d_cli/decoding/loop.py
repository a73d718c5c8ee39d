"""The decode loop: verify what is ready, commit what the target decided, roll the rest back.

One loop for everything: with the `EMPTY` stream it is plain target-only decoding. The aligner,
the policy and the drafter choose which candidates ride along; none of them can change what is
committed, because only tokens the target decided after exactly the committed prefix are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from as2d_cli.decoding.controller import Policy
from as2d_cli.decoding.protocols import ConfidentSession, DecodeState
from as2d_cli.decoding.stream import Clock
from as2d_cli.decoding.verify import count_accepted, cut
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import Step

LAG_TOKENS = 24
"""Committed tokens after which a drafter that was behind all the time is cancelled."""
TRIAL_TOKENS = 24
"""Draft tokens tested before a draft may be found useless."""
USELESS = 0.125
"""Share of right ones below which it is: even a poor drafter has more than half of them right."""


class Draft(Protocol):
    """Where candidates come from. See `stream.DraftReader`."""

    @property
    def complete(self) -> bool:
        """True when no token beyond the last snapshot will come while the target is at work."""

    def snapshot(self) -> int:
        """Return the number of draft tokens there are now."""

    def ids(self, start: int, stop: int) -> list[int]:
        """Copy of the tokens in [start, stop)."""

    def cancel(self) -> None:
        """Stop drafting."""


class Alignment(Protocol):
    """Where the next candidates are in the draft. See `align.Aligner`."""

    @property
    def seen(self) -> int:
        """Draft tokens fed so far."""

    @property
    def cursor(self) -> int | None:
        """Index of the next draft token to propose; None or one not yet seen: nothing to propose."""

    @property
    def run(self) -> int:
        """Committed tokens just before the cursor that the draft had right."""

    def feed(self, ids: Sequence[int], *, complete: bool) -> None:
        """Take newly published draft tokens."""

    def observe(self, tokens: Sequence[int]) -> None:
        """Take newly committed tokens."""


def decode(
    session: DecodeState,
    stream: Draft,
    aligner: Alignment,
    policy: Policy,
    *,
    end_id: int,
    clock: Clock = time.perf_counter,
) -> Iterator[Step]:
    """Decode one window, yielding one step per target pass. Never waits for the drafter.

    Between turns the cache holds the prompt and all committed tokens but the last, `pending`. The
    pending token's row is always needed, so K candidates cost K + 1 rows and commit up to K + 1
    tokens. Ends at `end_id` or after `session.max_tokens`, as plain decoding does; every committed
    token but the last is then in the cache.

    Raises DecodeError if the target has no prompt, did not decide every row or tells log-probabilities that
    are none.
    """
    if not session.prompt:
        raise DecodeError("the target opened a window without a prompt", "report this to the plugin's author")
    pending, kept, left = session.prompt[-1], session.length, session.max_tokens
    lag, worth = _Lag(), _Worth()
    confident = session if isinstance(session, ConfidentSession) else None
    while left > 0:
        ready = stream.snapshot()
        drafting = not stream.complete
        aligner.feed(stream.ids(aligner.seen, ready), complete=stream.complete)
        ahead = _ahead(stream, aligner.cursor, ready, left)
        run = aligner.run
        allowed = min(len(ahead), left - 1)
        candidates = ahead[: min(max(policy.choose(allowed, run, drafting), 0), allowed)]
        began = clock()
        decided = _forward(session, [pending, *candidates])
        ms = (clock() - began) * 1e3
        accepted = count_accepted(decided, candidates)
        tokens = cut(decided[: accepted + 1], end_id, left)
        logprobs = _logprobs(confident, len(tokens)) if confident else ()
        kept += len(tokens)
        session.rollback(kept)
        left -= len(tokens)
        pending = tokens[-1]
        policy.timed(1 + len(candidates), ms, drafting)
        tested, right = _trials(ahead, tokens)
        policy.learn(run, tested, right)
        aligner.observe(tokens)
        if drafting and (lag.too_long(len(tokens), ready, bool(ahead)) or worth.too_little(tested, right)):
            stream.cancel()
        taken = min(accepted, len(tokens))
        yield Step(tokens, len(candidates), taken, len(ahead), ms, began, run, tested, right, logprobs)
        if pending == end_id:
            return


def _ahead(stream: Draft, cursor: int | None, ready: int, limit: int) -> list[int]:
    if cursor is None or not 0 <= cursor < ready:
        return []
    return stream.ids(cursor, min(ready, cursor + limit))


def _forward(session: DecodeState, rows: list[int]) -> list[int]:
    answer = session.forward(rows)
    if not isinstance(answer, np.ndarray) or answer.dtype.kind != "i" or answer.ndim != 1:
        raise DecodeError("the target decided no token ids", "report this to the plugin's author")
    decided: list[int] = answer.tolist()
    if len(decided) != len(rows):
        # MNN's LLM engine does this when the exported graph keeps only the last row's logits.
        raise DecodeError(
            f"the target decided {len(decided)} of {len(rows)} rows",
            "the model's graph must return the logits of all rows",
        )
    return decided


def _logprobs(session: ConfidentSession, rows: int) -> tuple[float, ...]:
    """Return the log-probabilities of the tokens that are committed: those of the last pass's first rows."""
    told = session.logprobs(rows)
    if told.shape != (rows,) or not bool(((told <= 0) & np.isfinite(told)).all()):
        raise DecodeError(
            "the target told log-probabilities that are none", "report this to the plugin's author"
        )
    logprobs: list[float] = told.tolist()
    return tuple(logprobs)


def _trials(ahead: Sequence[int], tokens: Sequence[int]) -> tuple[int, int]:
    """How many draft tokens the committed ones put to the test, and how many of these were right.

    The target's own token tests one more draft token for free, so the policy goes on learning
    even while it proposes nothing.
    """
    testable = min(len(ahead), len(tokens))
    right = count_accepted(tokens, ahead[:testable])
    return min(right + 1, testable), right


class _Worth:
    """Counts draft tokens that were put to the test, and those that were right.

    Fewer than `TRIAL_TOKENS` tested tokens say nothing. From there on the draft of a window is given up once
    less than the share `USELESS` of all of them was right, here 2 of 24:

    >>> worth = _Worth()
    >>> worth.too_little(tested=20, right=0), worth.too_little(tested=4, right=2)
    (False, True)

    One more right token, 3 of 24, would have been enough:

    >>> worth = _Worth()
    >>> worth.too_little(tested=20, right=0), worth.too_little(tested=4, right=3)
    (False, False)
    """

    def __init__(self) -> None:
        self._tested = self._right = 0

    def too_little(self, tested: int, right: int) -> bool:
        """Tell whether the draft has nothing to do with the text, and making it only takes time."""
        self._tested, self._right = self._tested + tested, self._right + right
        return self._tested >= TRIAL_TOKENS and self._right < USELESS * self._tested


class _Lag:
    """Compares the drafter's pace with the target's over stretches in which no candidate was ready.

    A stretch is `LAG_TOKENS` committed tokens. If the draft grew by no more than the text in it, the drafter
    cannot catch up. Here it begins late, which says nothing about its pace; then the target commits 8 tokens
    and the drafter writes 4 between two passes: 24 against 12 after three of them.

    >>> lag = _Lag()
    >>> lag.too_long(committed=8, ready=5, had_candidates=False)
    False
    >>> [lag.too_long(8, ready, had_candidates=False) for ready in (9, 13, 17)]
    [False, False, True]

    One that writes 10 is behind as well, but gains; and any candidate begins the count anew.

    >>> lag = _Lag()
    >>> [lag.too_long(8, ready, had_candidates=False) for ready in (5, 15, 25, 35)]
    [False, False, False, False]
    >>> [lag.too_long(8, 35, had_candidates) for had_candidates in (False, False, True, False)]
    [False, False, False, False]
    """

    def __init__(self) -> None:
        self._committed = 0  # in this stretch
        self._drafted = 0  # when it began

    def too_long(self, committed: int, ready: int, had_candidates: bool) -> bool:
        """Tell whether the drafter only takes cpu time from the target: behind, and not catching up."""
        has_just_begun = ready > 0 and self._drafted == 0
        if had_candidates or has_just_begun:
            self._committed, self._drafted = 0, ready
            return False
        self._committed += committed
        if self._committed < LAG_TOKENS:
            return False
        is_behind = ready - self._drafted <= self._committed
        self._committed, self._drafted = 0, ready
        return is_behind
