"""Decides what runs, by what is known of this device: a drafter with a budget, or plain decoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from as2d_cli.decoding.controller import MAX_CANDIDATES
from as2d_cli.domain.errors import ModelError, OutputError
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.measure import PairCosts, peak_bytes
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models import loader
from as2d_cli.profile import store
from as2d_cli.profile.plan import DraftPlan, best_of, of_threads, within
from as2d_cli.system.device import fixed_work_ms, is_quiet

_DRIFT = 1.3
"""How much slower or faster than when it was measured a device may be before its profile is rescaled."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What there is to choose from, and within which limits."""

    settings: EngineSettings
    """Target, first choice of a drafter, and how to decode."""
    others: Sequence[ModelRef] = ()
    """Further drafters, used where their profile says that they are better."""
    memory_limit_bytes: int | None = None
    note: Callable[[str], None] = lambda _: None

    def stored(self) -> tuple[EngineSettings, DraftPlan | None]:
        """Choose by stored profiles; without one of the first drafter, change nothing."""
        target, first = self.settings.target, self.settings.drafter
        if first is None:
            return self.settings, None
        found = [
            (drafter, stored)
            for drafter in (first, *self.others)
            if (stored := store.load(store.profile_key(target, drafter), self.note)) is not None
        ]
        if not found or found[0][0] is not first:
            return self.settings, None
        now_ms = fixed_work_ms()
        today = {drafter.entry.name: self._today(stored, now_ms) for drafter, stored in found}
        budget = best_of([self._budget(name, own) for name, own in today.items()])
        chosen = next((one for one, _ in found if one.entry.name == budget.drafter), None)
        settings = replace(self.settings, drafter=chosen)
        return (applied(settings, budget, today[chosen.entry.name].costs) if chosen else settings), budget

    def _today(self, stored: store.Profile, now_ms: float) -> store.Profile:
        """Return the profile of a device that takes `now_ms` for the fixed work; a little drift is none."""
        drift = now_ms / stored.fixed_work_ms
        if 1 / _DRIFT <= drift <= _DRIFT:
            return stored
        self.note(f"this device takes {drift:.2f} times as long as when it was measured: rescaled")
        return stored.scaled(drift)

    def first(self, engine: Engine) -> DraftPlan:
        """Choose for a pair that has no profile yet: measure it, unless the machine has no time for that now.

        A machine that is busy before or after gives figures that are of no use later, and no sign that drafts
        would pay: then plain decoding it is, and the next run tries again; so, too, if a process ends.
        A drafter in the target's process takes no time worth measuring: its drafts are always welcome.
        """
        drafter = self.settings.drafter
        if drafter is not None and loader.drafts_inside(drafter.entry):
            reason = "this drafter takes next to no time"
            return DraftPlan(True, reason, drafter.entry.name, MAX_CANDIDATES)
        if not is_quiet():
            engine.drop_drafter()
            return DraftPlan(False, "the machine is too busy to measure what drafts are worth")
        self.note("measuring, once, what drafts are worth on this device: about 20 s")
        try:
            costs = engine.measure()
            if is_quiet(after_work=True):
                return self._kept(engine, costs)
            self.note("the machine became busy meanwhile: measured again in the next run")
        except OutputError as error:
            self.note(f"the profile is not kept: {error.message}")
        except ModelError as error:
            self.note(error.message)
        engine.drop_drafter()
        return DraftPlan(False, "what drafts are worth could not be measured")

    def measured(self, engine: Engine) -> DraftPlan:
        """Measure the pair that runs in `engine`, keep the store, and let the engine go on by it.

        Raises `ModelError` if there is no drafter at work, or a process ends; `OutputError` if the
        profile cannot be written.
        """
        return self._kept(engine, engine.measure())

    def _kept(self, engine: Engine, costs: tuple[PairCosts, ...]) -> DraftPlan:
        settings = self.settings
        if settings.drafter is None:
            raise ModelError("there is no drafter to measure")
        stored = store.store(store.profile_key(settings.target, settings.drafter), costs)
        budget = self._budget(settings.drafter.entry.name, stored)
        if budget.drafting:
            engine.decode_as(replace(applied(settings, budget, costs).decode, name="measured"))
            engine.share_threads(budget.decode_threads)
        else:
            engine.drop_drafter()
        return budget

    def _budget(self, drafter: str, stored: store.Profile) -> DraftPlan:
        limit = self.memory_limit_bytes
        left = None if limit is None else limit - peak_bytes()
        budget = within(stored.budget, stored.costs[0], left)
        return replace(budget, drafter=drafter if budget.drafting else None)


def applied(settings: EngineSettings, budget: DraftPlan, splits: Sequence[PairCosts]) -> EngineSettings:
    """Return settings that draft by `budget`."""
    costs = of_threads(splits, budget.decode_threads)
    known = replace(
        settings.decode,
        cap=budget.cap,
        idle_ms=costs.target.step_ms(),
        busy_ms=costs.target_busy.step_ms(),
    )
    target = replace(settings.target, decode_threads=budget.decode_threads)
    return replace(settings, target=target, decode=known)
