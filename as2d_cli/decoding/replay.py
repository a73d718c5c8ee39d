"""Replays a recorded window on a virtual clock: the same loop, aligner and policy, other costs.

Greedy tokens do not depend on when or how a draft is used, so what a window would have taken with
another cap, drafter pace or machine follows from its tokens, its draft and a table of costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from as2d_cli.decoding.align import Aligner
from as2d_cli.decoding.controller import Policy, StepCosts
from as2d_cli.decoding.loop import decode
from as2d_cli.decoding.stream import EMPTY, DraftState, DraftStream
from as2d_cli.decoding.virtual import Duet, PacedReader
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import Step, TokenIds

_PROMPT = -2
_NEVER = -1
"""Decided after any prefix that is not the recorded text: equal to no draft token, never committed."""


@dataclass(frozen=True, slots=True)
class RecordedWindow:
    """What a window's text and draft were, and how long its parts take undisturbed.

    Raises DecodeError if times are missing, negative or not in order.
    """

    tokens: tuple[int, ...]
    """The target's text, its end included if it came."""
    end_id: int
    vocab_size: int
    max_tokens: int
    """Most tokens the target may commit."""
    encode_ms: float
    """Target's encoder and prompt."""
    draft: tuple[int, ...] = ()
    """The draft in the target's vocabulary, in the order of publication."""
    publish_ms: tuple[float, ...] = ()
    """When each was published, in the drafter's own undisturbed time after its encoder."""
    draft_encode_ms: float = 0.0
    """Drafter's encoder; 0 if `publish_ms` counts from before it."""
    final: DraftState = DraftState.ENDED
    """How the draft ended, with its last token."""

    def __post_init__(self) -> None:
        """Check what would make a replay meaningless."""
        times = (0.0, *self.publish_ms)
        if len(self.publish_ms) != len(self.draft) or any(np.diff(times) < 0):
            raise DecodeError("a recorded draft needs an ascending publish time for every token")
        if not self.tokens or len(self.tokens) > self.max_tokens:
            raise DecodeError(f"a recorded text of {len(self.tokens)} tokens, at most {self.max_tokens}")
        if self.encode_ms < 0 or self.draft_encode_ms < 0 or not self.final.finished:
            raise DecodeError("a recorded window needs times of at least 0 and a finished draft")


@dataclass(frozen=True, slots=True)
class ReplayCosts:
    """What a machine makes of a window: costs of target passes, and how the two models slow each other."""

    steps: StepCosts
    encode_stretch: float = 1.0
    """Target's encoder beside a drafter at work, as a multiple of `encode_ms`."""
    draft_stretch: float = 1.0
    """Drafter beside a target at work, as a multiple of its undisturbed times."""
    control_ms: float = 0.0
    """Alignment and bookkeeping per step."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The time line of one window; all times in ms since the target's worker took it."""

    steps: tuple[Step, ...]
    encoded_ms: float
    """When decoding began."""
    total_ms: float

    @property
    def tokens(self) -> tuple[int, ...]:
        """The committed text."""
        return tuple(token for step in self.steps for token in step.tokens)


def replay(
    window: RecordedWindow,
    costs: ReplayCosts,
    policy: Policy,
    *,
    drafted: bool = True,
    head_start_ms: float = 0.0,
) -> Replay:
    """Decode `window` on a virtual clock, with a drafter beside it or (`drafted=False`) alone.

    Target and drafter begin together, or the drafter `head_start_ms` earlier. `policy` may be kept
    from window to window, but must not share its costs with `costs`, which are the truth here.
    Raises DecodeError if the text that comes out is not the recorded one.
    """
    due_s = [(window.draft_encode_ms + ms) / 1e3 for ms in window.publish_ms] if drafted else []
    end_s = due_s[-1] if due_s else window.draft_encode_ms / 1e3 if drafted else 0.0
    duet = Duet(end_s, costs.draft_stretch, head_start_ms / 1e3 if drafted else 0.0)
    draft = _RecordedDraft(window, due_s, duet) if drafted else EMPTY
    duet.work(window.encode_ms / 1e3, window.encode_ms * costs.encode_stretch / 1e3)
    encoded_s = duet.target()
    session = _RecordedSession(window, costs.steps, duet)
    steps = []
    for step in decode(session, draft, Aligner(), policy, end_id=window.end_id, clock=duet.target):
        steps.append(step)
        duet.work(costs.control_ms / 1e3, costs.control_ms / 1e3)
    result = Replay(tuple(steps), encoded_ms=encoded_s * 1e3, total_ms=duet.target() * 1e3)
    if result.tokens != window.tokens:
        raise DecodeError("a replayed window gave another text than was recorded", "is its end id right?")
    return result


class _RecordedDraft(PacedReader):
    """The recorded draft, published as the drafter's own time passes."""

    def __init__(self, window: RecordedWindow, due_s: Sequence[float], duet: Duet) -> None:
        size = len(window.draft)
        stream = DraftStream.in_memory(size, duet.drafter)
        stream.reset(1)
        schedule = list(zip(due_s, window.draft, strict=True))
        super().__init__(stream, 1, window.vocab_size, schedule, window.final)
        self._duet = duet

    def cancel(self) -> None:
        """Stop the drafter, which then no longer slows the target."""
        super().cancel()
        self._duet.stop_drafting()


class RecordedText:
    """What a target decided after each token of a recorded window; nothing that matters after any other."""

    def __init__(self, tokens: Sequence[int], first: int = _PROMPT) -> None:
        """`first` is the prompt's last token, the first that is given."""
        self._text = (first, *tokens)
        self._given = self._agreeing = 0  # tokens in the cache; leading ones of them that are the text

    def decide(self, token: int) -> int:
        """Append `token`; return what follows it."""
        text, at = self._text, self._given
        self._given += 1
        if self._agreeing == at < len(text) and text[at] == token:
            self._agreeing += 1
            if self._agreeing < len(text):
                return text[self._agreeing]
        return _NEVER

    def rollback(self, given: int) -> None:
        """Keep the first tokens, so many."""
        self._given = given
        self._agreeing = min(self._agreeing, given)


class _RecordedSession:
    """Decides as recorded, in the time that the costs say."""

    prompt = (_PROMPT,)

    def __init__(self, window: RecordedWindow, costs: StepCosts, duet: Duet) -> None:
        self.max_tokens = window.max_tokens
        self.length = 0
        self._text = RecordedText(window.tokens)
        most = 1 + min(len(window.draft), window.max_tokens)
        self._idle_ms, self._busy_ms = (costs.ms(most, drafting) for drafting in (False, True))
        self._duet = duet

    def forward(self, tokens: Sequence[int]) -> TokenIds:
        """Append `tokens`, let their cost pass, decide after each."""
        rows = len(tokens)
        self._duet.work(float(self._idle_ms[rows - 1]) / 1e3, float(self._busy_ms[rows - 1]) / 1e3)
        self.length += rows
        return np.array([self._text.decide(token) for token in tokens], np.int32)

    def rollback(self, length: int) -> None:
        """Keep the first `length` tokens."""
        self.length = length
        self._text.rollback(length)
