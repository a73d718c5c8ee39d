"""What a run knows of its pairs' costs, and what `as2d-auto` makes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from as2d_cli.bench.modes import AUTO
from as2d_cli.bench.trials import Staircase
from as2d_cli.domain.errors import As2dError
from as2d_cli.engine.engine import Engine
from as2d_cli.engine.measure import PairCosts
from as2d_cli.engine.messages import DecodeSettings, ModelRef
from as2d_cli.profile import store
from as2d_cli.profile.measure_pair import measure_pair
from as2d_cli.profile.plan import DraftPlan, best_of, forecast, of_threads, plan_drafts

Splits: TypeAlias = Sequence[PairCosts]
"""Costs of a pair by threads of the target's passes, all of them first."""


def known_costs(
    target: ModelRef, drafter: ModelRef, engine: Engine | None, note: Callable[[str], None]
) -> store.Profile | None:
    """Return the profile of a pair; with an `engine`, measure a missing one, which must be at rest.

    What cannot be trusted is used, for want of better, but not kept. None if nothing is known.
    """
    key, name = store.profile_key(target, drafter), drafter.entry.name
    stored = store.load(key)
    if stored is not None or engine is None:
        return stored
    flaws: list[str] = []
    try:
        costs = measure_pair(engine, flaws.append)
    except As2dError as error:
        note(f"{name} could not be measured: {error.message}")
        return None
    engine.share_threads(None)
    if not flaws:
        return store.store(key, costs)
    note(f"the costs with {name} are doubtful ({flaws[0]}): budget and replay may mislead; not kept")
    return store.new(key, costs)


def choose(costs: Mapping[str, Splits], note: Callable[[str], None]) -> DraftPlan:
    """Return what this device is best served by, as `transcribe` would decide; without costs, no drafts."""
    budgets = [plan_drafts(forecast(own), name, windows=store.USUAL_WINDOWS) for name, own in costs.items()]
    for name, budget in zip(costs, budgets, strict=True):
        note(f"{AUTO}, {name}: {_said(budget)}")
    return best_of(budgets) if budgets else DraftPlan(False, "nothing is known of this device")


def _said(budget: DraftPlan) -> str:
    if budget.drafted_s is None or budget.plain_s is None:
        return budget.reason
    return f"{budget.reason} ({budget.drafted_s:.2f} s against {budget.plain_s:.2f} s predicted)"


def decode_settings(splits: Splits | None, decode_threads: int | None = None) -> DecodeSettings:
    """Return settings that begin with what is known of the target's passes on so many threads (None: all)."""
    if not splits:
        return DecodeSettings()
    costs = of_threads(splits, decode_threads)
    return DecodeSettings(idle_ms=costs.target.step_ms(), busy_ms=costs.target_busy.step_ms())


def staircase(name: str, stored: store.Profile) -> Staircase:
    """Return what of a profile is worth showing."""
    costs = stored.costs[0]
    measured = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stored.measured_at))
    return Staircase(
        name,
        costs.target.step_ms(),
        costs.target_busy.step_ms(),
        costs.drafter.encode_ms,
        costs.drafter.token_ms,
        measured,
    )
