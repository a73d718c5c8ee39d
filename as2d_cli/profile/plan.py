"""Decides from a profile whether drafting pays on this device, on which threads, with how many candidates.

Made-up windows are replayed with the very loop that decodes (`decoding.replay`), on the costs that were
measured, with a drafter as good as it was seen to be. One criterion decides everything, whether to draft,
how, and with which drafter: the share of its plain time that a window takes, of which a high quantile counts.
So drafts are used only if they save time in nearly every window, also in those of slow speech, where there
is little to save, and also if the drafter is worse than was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from as2d_cli.decoding import Controller, StepCosts
from as2d_cli.decoding.controller import bucket_of
from as2d_cli.decoding.replay import RecordedWindow, ReplayCosts, replay
from as2d_cli.domain.types import DecodeStats
from as2d_cli.engine.measure import DraftCosts, PairCosts
from as2d_cli.profile.seen import Seen, quantiles

QUANTILE = 0.9
CAPS = (4, 7, 15, 23)
MIN_GAIN = 0.05
"""Share of its time that drafting must save a window to be worth the memory and the risk of a bad guess."""
PART = 0.7
"""Share of a window's encoding time below which there was less to encode."""
_LENGTHS = (40, 70, 100, 130, 170)
"""Tokens of a 30 s window, from slow to dense speech, before enough texts were seen."""
_ENOUGH_LENGTHS = 8
_QUALITIES = (-0.6, 0.0, 0.6)
"""Standard deviations by which a drafter may be worse or better than was seen."""
_LEAST_RATE = 0.01
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
    worst: float = 1.0
    """Predicted quantile of the share of its plain time that a window takes: what plans are compared by."""
    plain: PlainCosts | None = None

    def refused(self, reason: str) -> DraftPlan:
        """Return the same predictions without drafts."""
        return replace(
            self, drafting=False, reason=reason, drafter=None, cap=0, decode_threads=None, saving=0.0
        )


@dataclass(frozen=True, slots=True)
class Way:
    """A way to draft, and the share of its plain time that each made-up window takes with it."""

    cap: int
    decode_threads: int
    """Of the target's passes."""
    first: tuple[float, ...]
    """Of a run's first window, which begins without a draft."""
    later: tuple[float, ...]
    """Of a window for which the drafter had time before."""

    def shares(self, windows: int) -> list[float]:
        """Return the shares in a run of so many windows."""
        of_first = 1 / max(1, windows)
        return [
            of_first * first + (1 - of_first) * later
            for first, later in zip(self.first, self.later, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What made-up windows take: plainly, and in all ways to draft."""

    plain_ms: tuple[float, ...]
    ways: tuple[Way, ...]
    plain: PlainCosts
    is_exact: bool = True
    """Whether the target decides rows together as one by one."""

    def scaled(self, factor: float) -> Forecast:
        """Return the forecast for a device that takes `factor` times as long."""
        plain = PlainCosts(self.plain.encode_ms * factor, self.plain.token_ms * factor)
        return replace(self, plain_ms=tuple(ms * factor for ms in self.plain_ms), plain=plain)


def forecast(splits: Sequence[PairCosts], seen: Seen | None = None) -> Forecast:
    """Replay made-up windows in all ways.

    `splits` are the costs of a pair by threads of the target's passes, all of them first; `seen` is what is
    known of its drafter. It takes up to a second.
    """
    costs, seen = splits[0], seen or Seen()
    is_known = len(seen.lengths) >= _ENOUGH_LENGTHS
    lengths = quantiles(seen.lengths, len(_LENGTHS)) if is_known else _LENGTHS
    windows = [_window(costs, length, _rates(seen, quality)) for length in lengths for quality in _QUALITIES]
    machine = replay_costs(costs)
    plain_ms = tuple(replay(window, machine, Controller(), drafted=False).total_ms for window in windows)
    return Forecast(
        plain_ms,
        tuple(_way(own, windows, plain_ms, cap) for own in splits for cap in CAPS),
        PlainCosts(costs.target.encode_ms, float(costs.steps().ms(1, False)[0])),
        all(own.target.row_invariant for own in splits),
    )


def plan_drafts(
    made: Forecast, drafter: str | None = None, *, windows: int = 1, quantile: float = QUANTILE
) -> DraftPlan:
    """Return the plan with the least share of the plain time, for a run of so many windows at least."""
    # of equal shares the largest cap: the controller works below it as the draft deserves
    best = min(reversed(made.ways), key=lambda way: _quantile(way.shares(windows), quantile))
    shares = best.shares(windows)
    worst = _quantile(shares, quantile)
    drafted_ms = [share * ms for share, ms in zip(shares, made.plain_ms, strict=True)]
    pays, all_threads = worst < 1 - MIN_GAIN, made.ways[0].decode_threads
    plan = DraftPlan(
        drafting=pays,
        reason=_gain(worst, quantile),
        drafter=drafter if pays else None,
        cap=best.cap if pays else 0,
        decode_threads=best.decode_threads if pays and best.decode_threads != all_threads else None,
        plain_s=_quantile(made.plain_ms, quantile) / 1e3,
        drafted_s=_quantile(drafted_ms, quantile) / 1e3,
        saving=1 - sum(drafted_ms) / sum(made.plain_ms) if pays else 0.0,
        worst=worst,
        plain=made.plain,
    )
    if not made.is_exact:
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
    """Return the plan that drafts with the least share of the plain time; the first if none drafts."""
    return min(plans, key=lambda plan: plan.worst if plan.drafting else 1.0)


def _gain(worst: float, quantile: float) -> str:
    rest = f"one window in {1 / (1 - quantile):.3g}"
    if worst < 1 - MIN_GAIN:
        return f"drafts would save at least {1 - worst:.0%} of the time here, but in {rest}"
    if worst < 1:
        return f"drafts would save less than {MIN_GAIN:.0%} of the time in {rest} here"
    return f"drafts would cost {worst - 1:.0%} or more of the time in {rest} here"


def replay_costs(costs: PairCosts) -> ReplayCosts:
    """Return what a replay needs to know of a pair on this device."""
    return ReplayCosts(
        costs.steps(),
        encode_stretch=max(1.0, costs.target_busy.encode_ms / costs.target.encode_ms),
        draft_stretch=max(1.0, _draft_ms(costs.drafter_busy, 100) / _draft_ms(costs.drafter, 100)),
    )


def _draft_ms(costs: DraftCosts, tokens: int) -> float:
    return costs.encode_ms + tokens * costs.token_ms


def _way(costs: PairCosts, windows: Sequence[RecordedWindow], plain_ms: Sequence[float], cap: int) -> Way:
    machine = replay_costs(costs)
    pairs = [
        (
            replay(window, machine, Controller(cap=cap)).total_ms / ms,
            _later_ms(costs, machine, window, cap) / ms,
        )
        for window, ms in zip(windows, plain_ms, strict=True)
    ]
    first, later = zip(*pairs, strict=True)
    return Way(cap, costs.decode_threads, first, later)


def _later_ms(costs: PairCosts, machine: ReplayCosts, window: RecordedWindow, cap: int) -> float:
    """Predict the time of a window that is not a run's first.

    Its draft is complete, but the drafter is at work on windows ahead for as long as these take it: the
    target does part of its work beside it, at the busy price, and the rest alone. A drafter that needs longer
    for a window than the target never gains a lead: every window is like the first, beside a drafter that
    never rests.
    """
    always = replace(machine, steps=StepCosts(costs.target_busy.step_ms(), costs.target_busy.step_ms()))
    complete = replace(window, publish_ms=(0.0,) * len(window.draft), draft_encode_ms=0.0)
    slowed = replace(complete, encode_ms=costs.target_busy.encode_ms)
    busy = replay(slowed, always, Controller(cap=cap), head_start_ms=1.0).total_ms
    drafting = _draft_ms(costs.drafter_busy, len(window.draft))
    if drafting >= busy:
        return replay(window, always, Controller(cap=cap)).total_ms
    alone = replay(complete, machine, Controller(cap=cap), head_start_ms=1.0).total_ms
    return alone + drafting * (1 - alone / busy)


def _rates(seen: Seen, quality: float) -> list[float]:
    """Return how likely a draft token is right by bucket of run length, with a drafter of this quality."""
    known = zip(seen.hazard.rates, seen.hazard.doubts, strict=True)
    return [min(max(rate + quality * doubt, _LEAST_RATE), 1 - _LEAST_RATE) for rate, doubt in known]


def _window(costs: PairCosts, length: int, rates: Sequence[float]) -> RecordedWindow:
    """Return a made-up window: a text of `length` tokens, and a draft that is right as often as `rates`."""
    rng = np.random.default_rng(length)
    text = [*range(_FIRST_ID, _FIRST_ID + length), _END_ID]
    run, draft = 0, []
    for token in text[:-1]:
        is_right = rng.random() < rates[bucket_of(run)]
        run = run + 1 if is_right else 0
        draft.append(token if is_right else _WRONG_ID)
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


def _quantile(values: Sequence[float], quantile: float) -> float:
    return float(np.quantile(values, quantile))
