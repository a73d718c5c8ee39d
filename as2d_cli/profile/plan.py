"""Decides from a profile whether drafting pays on this device, on which threads, with how many candidates.

Windows of typical speech are replayed with the very loop that decodes (`decoding.replay`), on the costs
that were measured. The choice is the one with the least high quantile of the time per window; it is used
only if drafts then save time in nearly every window, also in those of slow speech, where there is little
to save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from as2d_cli.decoding import Controller, StepCosts
from as2d_cli.decoding.replay import RecordedWindow, ReplayCosts, replay
from as2d_cli.domain.types import DecodeStats
from as2d_cli.engine.measure import DraftCosts, PairCosts

QUANTILE = 0.9
CAPS = (4, 7, 15, 23)
MIN_GAIN = 0.05
"""Share of its time that drafting must save a window to be worth the memory and the risk of a bad guess."""
PART = 0.7
"""Share of a window's encoding time below which there was less to encode."""
_LENGTHS = (40, 70, 100, 130, 170)
"""Tokens of a 30 s window, from slow to dense speech."""
_ERROR_RATES = (0.05, 0.1, 0.2)
"""Share of draft tokens that are wrong where the draft has just been right: a good, usual, poor draft."""
_BURST = 0.4
"""Share of draft tokens that are wrong just after a wrong one."""
_END_ID, _WRONG_ID, _FIRST_ID = 0, 1, 2


@dataclass(frozen=True, slots=True)
class PlainCosts:
    """What a window takes without drafts, with all threads."""

    encode_ms: float
    """Of a window of 30 s."""
    token_ms: float

    def window_s(self, stats: DecodeStats) -> float:
        """Return what the decoded window would have taken plainly, seconds.

        Where encoding took clearly less than a whole window does, there was less to encode.
        """
        encode_s = self.encode_ms / 1e3
        is_part = stats.encode_s < PART * encode_s
        return (stats.encode_s if is_part else encode_s) + stats.tokens * self.token_ms / 1e3


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """Whether to draft, on which threads, and the most candidates per step."""

    drafting: bool
    reason: str
    drafter: str | None = None
    cap: int = 0
    decode_threads: int | None = None
    """Threads of the target's passes; None: all of them."""
    plain_s: float | None = None
    """Predicted quantile of the time per window without drafts, seconds; None if nothing was predicted."""
    drafted_s: float | None = None
    saving: float = 0.0
    """Share of its time that is predicted to be saved over all windows together."""
    plain: PlainCosts | None = None

    def refused(self, reason: str) -> DraftPlan:
        """Return the same predictions without drafts."""
        return replace(
            self, drafting=False, reason=reason, drafter=None, cap=0, decode_threads=None, saving=0.0
        )

    def scaled(self, factor: float) -> DraftPlan:
        """Return the plan for a device that takes `factor` times as long."""
        return replace(
            self,
            plain_s=self.plain_s and self.plain_s * factor,
            drafted_s=self.drafted_s and self.drafted_s * factor,
            plain=self.plain and PlainCosts(self.plain.encode_ms * factor, self.plain.token_ms * factor),
        )


@dataclass(frozen=True, slots=True)
class _Prediction:
    """Times per window of one way to share out the threads, with one cap."""

    costs: PairCosts
    cap: int
    drafted_ms: Sequence[float]


def plan_drafts(splits: Sequence[PairCosts], drafter: str | None = None) -> DraftPlan:
    """Return the plan with the least predicted time per window, plain decoding included.

    `splits` are the costs of a pair by threads of the target's passes, all of them first. It takes up to a
    second.
    """
    costs = splits[0]
    windows = [_window(costs, length, rate) for length in _LENGTHS for rate in _ERROR_RATES]
    machine = replay_costs(costs)
    plain_ms = [replay(window, machine, Controller(), drafted=False).total_ms for window in windows]
    # of equal times the largest cap: the controller works below it as the draft deserves
    best = min(
        (_predict(own, windows, cap) for own in splits for cap in reversed(CAPS)),
        key=lambda prediction: _quantile(prediction.drafted_ms),
    )
    worst = _quantile(
        [with_drafts / alone for with_drafts, alone in zip(best.drafted_ms, plain_ms, strict=True)]
    )
    pays = worst < 1 - MIN_GAIN
    split = best.costs.decode_threads
    plan = DraftPlan(
        drafting=pays,
        reason=_gain(worst),
        drafter=drafter if pays else None,
        cap=best.cap if pays else 0,
        decode_threads=split if pays and split != costs.decode_threads else None,
        plain_s=_quantile(plain_ms) / 1e3,
        drafted_s=_quantile(best.drafted_ms) / 1e3,
        saving=1 - sum(best.drafted_ms) / sum(plain_ms) if pays else 0.0,
        plain=PlainCosts(costs.target.encode_ms, float(costs.steps().ms(1, False)[0])),
    )
    if not all(own.target.row_invariant for own in splits):
        return plan.refused(
            "this target decides rows together otherwise than one by one: drafts could change its text"
        )
    return plan


def within(plan: DraftPlan, costs: PairCosts, left_bytes: int | None, limit: str) -> DraftPlan:
    """Return the plan if both models find room in what a limit leaves them, else the same without drafts."""
    needed = costs.target.peak_bytes + costs.drafter.peak_bytes
    if left_bytes is None or needed <= left_bytes or not plan.drafting:
        return plan
    left = max(0, left_bytes) / 1e6
    return plan.refused(f"both models need {needed / 1e6:.0f} MB, {limit} leaves them {left:.0f} MB")


def of_threads(splits: Sequence[PairCosts], decode_threads: int | None) -> PairCosts:
    """Return the costs with so many threads for the target's passes (None: all)."""
    return next(own for own in splits if own.decode_threads == (decode_threads or splits[0].decode_threads))


def best_of(plans: Sequence[DraftPlan]) -> DraftPlan:
    """Return the plan that saves most; the first if none does."""
    return max(plans, key=lambda plan: plan.saving)


def _gain(worst: float) -> str:
    if worst < 1 - MIN_GAIN:
        return f"drafts would save at least {1 - worst:.0%} of the time in nine windows of ten here"
    if worst < 1:
        return f"drafts would save less than {MIN_GAIN:.0%} of the time in one window of ten here"
    return f"drafts would cost {worst - 1:.0%} or more of the time in one window of ten here"


def replay_costs(costs: PairCosts) -> ReplayCosts:
    """Return what a replay needs to know of a pair on this device."""
    return ReplayCosts(
        costs.steps(),
        encode_stretch=max(1.0, costs.target_busy.encode_ms / costs.target.encode_ms),
        draft_stretch=max(1.0, _draft_ms(costs.drafter_busy, 100) / _draft_ms(costs.drafter, 100)),
    )


def _draft_ms(costs: DraftCosts, tokens: int) -> float:
    return costs.encode_ms + tokens * costs.token_ms


def _predict(costs: PairCosts, windows: Sequence[RecordedWindow], cap: int) -> _Prediction:
    machine = replay_costs(costs)
    return _Prediction(costs, cap, [_drafted_ms(costs, machine, window, cap) for window in windows])


def _drafted_ms(costs: PairCosts, machine: ReplayCosts, window: RecordedWindow, cap: int) -> float:
    """Predict a window's time with drafts: the worse of a run's first window and a later one.

    The first begins with no draft. On later ones the draft is complete, but the drafter is at work on
    windows ahead for as long as these take it: the target does part of its work beside it, at the
    busy price, and the rest alone. A drafter that needs longer for a window than the target never
    gains a lead: every window is like the first, beside a drafter that never rests.
    """
    first = replay(window, machine, Controller(cap=cap)).total_ms
    always = replace(machine, steps=StepCosts(costs.target_busy.step_ms(), costs.target_busy.step_ms()))
    complete = replace(window, publish_ms=(0.0,) * len(window.draft), draft_encode_ms=0.0)
    slowed = replace(complete, encode_ms=costs.target_busy.encode_ms)
    busy = replay(slowed, always, Controller(cap=cap), head_start_ms=1.0).total_ms
    drafting = _draft_ms(costs.drafter_busy, len(window.draft))
    if drafting >= busy:
        return max(first, replay(window, always, Controller(cap=cap)).total_ms)
    alone = replay(complete, machine, Controller(cap=cap), head_start_ms=1.0).total_ms
    return max(first, alone + drafting * (1 - alone / busy))


def _window(costs: PairCosts, length: int, error_rate: float) -> RecordedWindow:
    """Return a made-up window: a text of `length` tokens, and a draft with wrong ones in bursts."""
    rng = np.random.default_rng(length)
    text = [*range(_FIRST_ID, _FIRST_ID + length), _END_ID]
    wrong, draft = False, []
    for token in text[:-1]:
        wrong = rng.random() < (_BURST if wrong else error_rate)
        draft.append(_WRONG_ID if wrong else token)
    paces = costs.drafter.token_ms * np.arange(1, length + 2)
    return RecordedWindow(
        tokens=tuple(text),
        end_id=_END_ID,
        vocab_size=_FIRST_ID + length,
        max_tokens=len(text),
        encode_ms=costs.target.encode_ms,
        draft=(*draft, _END_ID),
        publish_ms=tuple(paces.tolist()),
        draft_encode_ms=costs.drafter.encode_ms,
    )


def _quantile(values: Sequence[float]) -> float:
    return float(np.quantile(values, QUANTILE))
