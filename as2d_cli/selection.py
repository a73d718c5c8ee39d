"""Decides what runs, by what is known of this device: the drafter with a budget, or plain decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from as2d_cli import profile
from as2d_cli.budget import Budget, choose_budget
from as2d_cli.device import is_quiet
from as2d_cli.engine import Engine, EngineSettings
from as2d_cli.measure import PairCosts


def apply_stored(
    settings: EngineSettings, memory_limit_bytes: int | None = None
) -> tuple[EngineSettings, Budget | None]:
    """Apply the stored profile of this pair on this device; without one, change nothing."""
    if settings.drafter is None:
        return settings, None
    stored = profile.load(profile.profile_key(settings.target, settings.drafter))
    if stored is None:
        return settings, None
    budget = choose_budget(stored.costs, memory_limit_bytes)
    return _with_budget(settings, stored.costs, budget), budget


def first_budget(engine: Engine, settings: EngineSettings, note: Callable[[str], None]) -> Budget:
    """Choose for a pair that has no profile yet: measure it, unless the machine has no time for that now.

    A busy machine gives figures that are of no use later, and no sign that drafts would pay: then
    plain decoding it is, and the next run tries again.
    """
    if is_quiet():
        note("measuring, once, what drafts are worth on this device")
        return measure_pair(engine, settings)
    engine.drop_drafter()
    return Budget(False, 0, None, None, "the machine is too busy to measure what drafts are worth")


def measure_pair(engine: Engine, settings: EngineSettings, memory_limit_bytes: int | None = None) -> Budget:
    """Measure the pair that runs in `engine`, keep the profile, and drop the drafter if it does not pay.

    Raises `ModelError` if there is no drafter at work.
    """
    costs = engine.measure()
    if settings.drafter is not None:
        profile.store(profile.profile_key(settings.target, settings.drafter), costs)
    budget = choose_budget(costs, memory_limit_bytes)
    if not budget.drafting:
        engine.drop_drafter()
    return budget


def _with_budget(settings: EngineSettings, costs: PairCosts, budget: Budget) -> EngineSettings:
    if not budget.drafting:
        return replace(settings, drafter=None)
    known = replace(
        settings.decode,
        cap=budget.cap,
        idle_ms=costs.target.step_ms(),
        busy_ms=costs.target_busy.step_ms(),
    )
    return replace(settings, decode=known)
