"""What a run knows of its pairs' costs, and what `as2d-auto` makes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from as2d_cli import profile
from as2d_cli.bench.modes import AUTO
from as2d_cli.bench.rows import Staircase
from as2d_cli.budget import Budget, choose_budget
from as2d_cli.device import is_quiet
from as2d_cli.engine import Engine
from as2d_cli.errors import As2dError
from as2d_cli.measure import PairCosts
from as2d_cli.workers import DecodeSettings, ModelRef


@dataclass(frozen=True, slots=True)
class Chosen:
    """A drafter with a cap, or none, and the speedup that is predicted of it."""

    drafter: str | None = None
    cap: int = 0
    predicted_speedup: float = 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return it for the provenance of the rows."""
        return {
            "drafter": self.drafter,
            "cap": self.cap,
            "predicted_speedup": round(self.predicted_speedup, 3),
        }


def known_costs(
    target: ModelRef, drafter: ModelRef, engine: Engine | None, note: Callable[[str], None]
) -> profile.Profile | None:
    """Return the profile of a pair; with an `engine`, measure a missing one, which must be at rest.

    What a busy machine gives is used, for want of better, but not kept. None if nothing is known.
    """
    key, name = profile.profile_key(target, drafter), drafter.entry.name
    stored = profile.load(key)
    if stored is not None or engine is None:
        return stored
    quiet = is_quiet()
    try:
        costs = engine.measure()
    except As2dError as error:
        note(f"{name} could not be measured: {error.message}")
        return None
    if quiet:
        return profile.store(key, costs)
    note(f"the costs with {name} were measured on a busy machine: budget and replay may mislead; not kept")
    return profile.Profile(key, time.time(), costs)


def choose(costs: Mapping[str, PairCosts], note: Callable[[str], None]) -> Chosen:
    """Return what this device is best served by, as `transcribe` would decide for each pair."""
    budgets = {name: choose_budget(own) for name, own in costs.items()}
    for name, budget in budgets.items():
        note(f"{AUTO}, {name}: {_said(budget)}")
    gains = {name: _gain(budget) for name, budget in budgets.items() if budget.drafting}
    if not gains:
        return Chosen()
    best = max(gains, key=lambda name: gains[name])
    return Chosen(best, budgets[best].cap, gains[best])


def _gain(budget: Budget) -> float:
    return (budget.plain_s or 0.0) / (budget.drafted_s or 1.0)


def _said(budget: Budget) -> str:
    if budget.drafted_s is None or budget.plain_s is None:
        return budget.reason
    return f"{budget.reason} ({budget.drafted_s:.2f} s against {budget.plain_s:.2f} s predicted)"


def decode_settings(costs: PairCosts | None) -> DecodeSettings:
    """Return settings that begin with what is known of the target's passes."""
    if costs is None:
        return DecodeSettings()
    return DecodeSettings(idle_ms=costs.target.step_ms(), busy_ms=costs.target_busy.step_ms())


def staircase(name: str, stored: profile.Profile) -> Staircase:
    """Return what of a profile is worth showing."""
    costs = stored.costs
    measured = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stored.measured_at))
    return Staircase(
        name,
        costs.target.step_ms(),
        costs.target_busy.step_ms(),
        costs.drafter.encode_ms,
        costs.drafter.token_ms,
        measured,
    )
