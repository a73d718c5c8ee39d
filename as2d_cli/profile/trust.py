"""Judges whether a measurement can be trusted: each function returns a flaw in one line, or None.

A profile decides for good whether drafts are used. One that was taken beside other work promises savings
that there are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from as2d_cli.engine.measure import PairCosts, TargetCosts
from as2d_cli.profile.machine_load import Load

MAX_SHARE = 0.1
"""Share of the processors that others may use meanwhile."""
MAX_SPREAD = 1.25
"""How much longer than the lower quartile half of the repeats of a pass may take."""
TOLERANCE = 1.3
"""How much dearer something may seem than what cannot be cheaper."""
_SLACK_MS = 1.0
"""What the clock and the scheduler may add to any figure."""


def load_flaw(load: Load | None) -> str | None:
    """Judge what others did meanwhile; nothing is held against a system that does not tell."""
    if load is None or load.share <= MAX_SHARE:
        return None
    return f"other programs used {load.others:.1f} of {load.present} processors while it was measured"


def target_flaw(costs: TargetCosts) -> str | None:
    """Judge a target that was measured alone."""
    if costs.spread > MAX_SPREAD:
        return f"repeats of the same pass took {costs.spread:.1f} times as long while it was measured"
    return _curve_flaw(costs.step_ms())


def encoder_flaw(first: TargetCosts, again: TargetCosts) -> str | None:
    """Judge two measurements of the same encoder with nothing beside it."""
    low, high = sorted((first.encode_ms, again.encode_ms))
    return f"encoding a window took {low:.0f} ms and {high:.0f} ms" if _exceeds(high, low) else None


def costs_flaw(splits: Sequence[PairCosts]) -> str | None:
    """Judge the costs of a pair by themselves: no machine has some of the curves that disturbances draw.

    A pass of more rows is not cheaper, and nothing is cheaper while the other model is at work. How passes
    *beside* the drafter rise with their rows is not judged: they take turns with it on the same cores.
    """
    return next((flaw for costs in splits for flaw in _pair_flaws(costs)), None)


def _pair_flaws(costs: PairCosts) -> Iterator[str]:
    idle_ms, busy_ms = costs.target.step_ms(), costs.target_busy.step_ms()
    if flaw := _curve_flaw(idle_ms):
        yield flaw
    pairs = [
        ("encoding a window", costs.target.encode_ms, costs.target_busy.encode_ms),
        *((f"a pass of {_rows(rows)}", ms, busy_ms[rows]) for rows, ms in idle_ms.items()),
        ("the drafter's encoding", costs.drafter.encode_ms, costs.drafter_busy.encode_ms),
        ("a draft token", costs.drafter.token_ms, costs.drafter_busy.token_ms),
    ]
    for what, alone, beside in pairs:
        if _exceeds(alone, beside):
            yield f"{what} took {alone:.1f} ms alone and {beside:.1f} ms beside the other model"


def _curve_flaw(curve: Mapping[int, float]) -> str | None:
    """Look for a pass that took longer than one of more rows."""
    for rows, ms in curve.items():
        for more, cheaper in curve.items():
            if more > rows and _exceeds(ms, cheaper):
                return f"a pass of {_rows(rows)} took {ms:.1f} ms, one of {more} rows {cheaper:.1f} ms"
    return None


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


def _exceeds(ms: float, bound_ms: float) -> bool:
    return ms > TOLERANCE * bound_ms + _SLACK_MS
