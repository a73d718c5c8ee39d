"""Decoding with made-up timing: the real loop on a clock that jumps, with drafts that come in fits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from as2d_cli.decoding import (
    Aligner,
    Alignment,
    Controller,
    DraftState,
    DraftStream,
    FixedBudget,
    PassageAligner,
    Policy,
    decode,
)
from as2d_cli.decoding.protocols import TargetSession
from as2d_cli.decoding.virtual import PacedReader, VirtualClock

_PACES_S = (0.0, 0.002, 0.01, 0.1)


class Ids(NamedTuple):
    """A target's ids: which one ends a text, and how many there are."""

    end: int
    size: int


class JumpingClock(VirtualClock):
    """Whoever asks it for the time lets a random time pass, 10 ms on average."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self._draw = draw

    def __call__(self) -> float:
        """Return the time, seconds."""
        self.advance(self._draw.expovariate(100))
        return self.now_s


def alone(session: TargetSession, end_id: int, limit: int) -> list[int]:
    """Return a session's text decided row by row, in the plainest way: what no draft may change."""
    token, text = session.prompt[-1], list[int]()
    while len(text) < min(limit, session.max_tokens) and token != end_id:
        token = int(session.forward([token])[0])
        text.append(token)
    return text


def spoiled(text: Sequence[int], vocab_size: int, draw: random.Random) -> list[int]:
    """Return a draft of `text`: with wrong, missing and added tokens, or all wrong, or all right."""
    share = draw.choice((0.0, 0.1, 0.3, 1.0))
    draft: list[int] = []
    for token in text:
        wrong = draw.random() < share
        draft += [draw.randrange(vocab_size)] * draw.randint(0, 2) if wrong else [token]
    return draft


def raced(
    session: TargetSession,
    draft: Sequence[int],
    draw: random.Random,
    ids: Ids,
    limit: int,
    *,
    passages: bool = False,
) -> tuple[list[int], int]:
    """Decode with a draft that is published at random moments; return the text and the target's passes.

    `passages` has the draft searched, as those of inner drafters may be. Ends after `limit` tokens.
    """
    clock = JumpingClock(draw)
    capacity = max(len(draft), 1)
    stream = DraftStream.in_memory(capacity, clock)
    stream.reset(1)
    pace_s = draw.choice(_PACES_S)
    due = accumulate(draw.random() * 2 * pace_s for _ in draft)
    final = draw.choice([state for state in DraftState if state.finished])
    reader = PacedReader(stream, 1, ids.size, list(zip(due, draft, strict=True)), final)
    aligner: Alignment = PassageAligner() if passages else Aligner(draw.choice(("hybrid", "ngram", "edit")))
    policy: Policy = draw.choice((FixedBudget(draw.randint(1, 15)), Controller()))
    text: list[int] = []
    passes = 0
    for step in decode(session, reader, aligner, policy, end_id=ids.end, clock=clock):
        text += step.tokens
        passes += 1
        if len(text) >= limit:
            break
    return text[:limit], passes
