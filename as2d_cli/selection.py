"""Decides what runs, by what is known of this device: the drafter with a budget, or plain decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from as2d_cli import plugins, profile
from as2d_cli.budget import Budget, choose_budget
from as2d_cli.decoding.controller import MAX_CANDIDATES
from as2d_cli.device import is_quiet
from as2d_cli.engine import Engine, EngineSettings
from as2d_cli.errors import ModelError, OutputError
from as2d_cli.measure import PairCosts


def apply_stored(settings: EngineSettings) -> tuple[EngineSettings, Budget | None]:
    """Apply the stored profile of this pair on this device; without one, change nothing."""
    if settings.drafter is None:
        return settings, None
    stored = profile.load(profile.profile_key(settings.target, settings.drafter))
    if stored is None:
        return settings, None
    budget = choose_budget(stored.costs)
    return _with_budget(settings, stored.costs, budget), budget


def first_budget(engine: Engine, settings: EngineSettings, note: Callable[[str], None]) -> Budget:
    """Choose for a pair that has no profile yet: measure it, unless the machine has no time for that now.

    A busy machine gives figures that are of no use later, and no sign that drafts would pay: then
    plain decoding it is, and the next run tries again. So it is if a process ends while measured.
    A drafter in the target's process takes no time worth measuring: its drafts are always welcome.
    """
    if settings.drafter is not None and plugins.drafts_inside(settings.drafter.entry):
        return Budget(True, MAX_CANDIDATES, None, None, "this drafter takes next to no time")
    if not is_quiet():
        engine.drop_drafter()
        return _unmeasured("the machine is too busy to measure what drafts are worth")
    note("measuring, once, what drafts are worth on this device")
    try:
        return measure_pair(engine, settings)
    except OutputError as error:
        note(f"the profile is not kept: {error.message}")
    except ModelError as error:
        note(error.message)
    engine.drop_drafter()
    return _unmeasured("what drafts are worth could not be measured")


def _unmeasured(reason: str) -> Budget:
    return Budget(False, 0, None, None, reason)


def measure_pair(engine: Engine, settings: EngineSettings) -> Budget:
    """Measure the pair that runs in `engine`, keep the profile, and let the engine go on by it.

    Raises `ModelError` if there is no drafter at work, or a process ends; `OutputError` if the profile
    cannot be written.
    """
    costs = engine.measure()
    if settings.drafter is not None:
        profile.store(profile.profile_key(settings.target, settings.drafter), costs)
    budget = choose_budget(costs)
    if budget.drafting:
        engine.decode_as(replace(_with_budget(settings, costs, budget).decode, name="measured"))
    else:
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
