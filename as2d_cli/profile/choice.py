"""Answers "why no drafts?": whether a run has a drafter, which one and with what plan, and for what reason.

The reason is `DraftPlan.reason`. It comes from this device's profile of the pair (`store`), from measuring
the pair (`measure_pair`), or from what kept it from being measured. Whether drafts still pay while the run
goes on is the guard's question (`guard`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from as2d_cli.decoding.controller import MAX_CANDIDATES
from as2d_cli.domain.errors import MeasurementError, ModelError, OutputError
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.measure import PairCosts, peak_bytes
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models import loader
from as2d_cli.profile import store
from as2d_cli.profile.machine_load import is_quiet
from as2d_cli.profile.measure_pair import measure_pair
from as2d_cli.profile.plan import DraftPlan, best_of, of_threads, within
from as2d_cli.system.device import fixed_work_ms, free_memory_bytes

_DRIFT = 1.3
"""How much slower or faster than when it was measured a device may be before its profile is rescaled."""


@dataclass(frozen=True, slots=True)
class DraftChoice:
    """Chooses between drafters and plain decoding, within the limits of a run.

    Before the models are loaded, `by_profiles` chooses by what is stored. If that is nothing,
    `by_first_measurement` measures the loaded pair.
    """

    settings: EngineSettings
    """Target, first choice of a drafter, and how to decode."""
    others: Sequence[ModelRef] = ()
    """Further drafters, used where their profile says that they are better."""
    memory_limit_bytes: int | None = None
    work: store.Work = field(default_factory=store.Work)
    """What is to be done."""
    note: Callable[[str], None] = lambda _: None
    free_bytes: int | None = field(default_factory=free_memory_bytes)
    """Memory that models may take; None if that is not known. To be asked before they are loaded."""

    def by_profiles(self) -> tuple[EngineSettings, DraftPlan | None]:
        """Return settings that follow the best plan of the stored profiles, and that plan.

        Without a profile of the first drafter nothing is decided: the same settings, and None. Another one
        that was never seen at such work is chosen only if the first, and those seen, would not pay.
        """
        candidates = self._candidates()
        if not candidates or candidates[0][0] is not self.settings.drafter:
            return self.settings, None
        now_ms = fixed_work_ms()
        rescaled = [(drafter, self._rescaled(profile, now_ms)) for drafter, profile in candidates]
        plans = [self._plan(drafter, profile) for drafter, profile in rescaled]
        known = [
            plan
            for plan, (drafter, profile) in zip(plans, rescaled, strict=True)
            if drafter is self.settings.drafter or profile.has_seen(self.work)
        ]
        best = best_of(known)
        plan = best if best.drafting else best_of(plans)
        for drafter, profile in rescaled:
            if drafter.entry.name == plan.drafter:
                return with_plan(replace(self.settings, drafter=drafter), plan, profile.costs), plan
        return replace(self.settings, drafter=None), plan

    def by_first_measurement(self, engine: Engine) -> DraftPlan:
        """Choose for a pair that has no profile: measure it, unless the machine has no time for that now.

        Until a measurement can be trusted, runs decode plainly and the next one tries again; so, too, if a
        process ends. A drafter in the target's process takes no time worth measuring: its drafts are always
        welcome.
        """
        drafter = self.settings.drafter
        if drafter is not None and loader.drafts_inside(drafter.entry):
            reason = "this drafter takes next to no time"
            return DraftPlan(True, reason, drafter.entry.name, MAX_CANDIDATES)
        if not is_quiet():
            return self._without_profile("the machine is too busy to measure what drafts are worth", engine)
        self.note("measuring, once, what drafts are worth on this device: about 20 s")
        try:
            return self.by_measurement(engine)
        except OutputError as error:
            return self._without_profile(f"the profile is not kept: {error.message}", engine)
        except (MeasurementError, ModelError) as error:
            return self._without_profile(error.message, engine)

    def by_measurement(self, engine: Engine) -> DraftPlan:
        """Measure the pair in `engine`, keep its profile and go on as planned.

        Raises `MeasurementError` if the figures cannot be trusted, `ModelError` if there is no drafter at
        work or a process ends, `OutputError` if the profile cannot be written.
        """
        return self._keep_and_apply(measure_pair(engine), engine)

    def _without_profile(self, reason: str, engine: Engine) -> DraftPlan:
        """Go on without drafts until a run has measured what they are worth."""
        self.note(f"{reason}; going on without drafts")
        engine.drop_drafter()
        return DraftPlan(False, reason)

    def _keep_and_apply(self, costs: tuple[PairCosts, ...], engine: Engine) -> DraftPlan:
        """Store what was measured, and let the engine go on by what follows from it."""
        target, drafter = self.settings.target, self.settings.drafter
        if drafter is None:
            raise ModelError("there is no drafter to measure")
        plan = self._plan(drafter, store.store(store.profile_key(target, drafter), costs))
        if plan.drafting:
            engine.decode_as(replace(with_plan(self.settings, plan, costs).decode, name="measured"))
            engine.share_threads(plan.decode_threads)
        else:
            engine.drop_drafter()
        return plan

    def stored(self) -> dict[str, store.Profile]:
        """Return the profiles that can be chosen by, by the drafter's name."""
        return {drafter.entry.name: profile for drafter, profile in self._candidates()}

    def _candidates(self) -> list[tuple[ModelRef, store.Profile]]:
        """Return the drafters that have a stored profile, with it; the first choice comes first."""
        target, first = self.settings.target, self.settings.drafter
        drafters = () if first is None else (first, *self.others)
        return [
            (drafter, profile)
            for drafter in drafters
            if (profile := store.load(store.profile_key(target, drafter), self.note)) is not None
        ]

    def _rescaled(self, profile: store.Profile, now_ms: float) -> store.Profile:
        """Return the profile of a device that takes `now_ms` for the fixed work; a little drift is none."""
        factor = drift(profile, now_ms)
        if factor == 1:
            return profile
        self.note(f"this device takes {factor:.2f} times as long as when it was measured: rescaled")
        return profile.scaled(factor)

    def _plan(self, drafter: ModelRef, profile: store.Profile) -> DraftPlan:
        """Return the profile's plan within the memory that there is, with the drafter's name."""
        name, costs, limit = drafter.entry.name, profile.costs[0], self.memory_limit_bytes
        chosen = profile.plan(self.work)
        plan = within(chosen, costs, limit and limit - peak_bytes(), "the limit")
        plan = within(plan, costs, self.free_bytes, "this device")
        if plan.drafting and (loss := profile.record.loss):
            plan = plan.refused(f"in earlier runs it cost {loss:.0%} of the time: no further try for a week")
        if chosen.drafting and not plan.drafting:
            return replace(plan, reason=f"{name} is left out: {plan.reason}")
        return replace(plan, drafter=name if plan.drafting else None)


def drift(profile: store.Profile, now_ms: float) -> float:
    """Return how much longer this device takes than when it was measured, by `now_ms` for the fixed work."""
    factor = now_ms / profile.fixed_work_ms
    return 1.0 if 1 / _DRIFT <= factor <= _DRIFT else factor


def with_plan(settings: EngineSettings, plan: DraftPlan, splits: Sequence[PairCosts]) -> EngineSettings:
    """Return settings that draft as planned, from the costs of the pair by threads of the target's passes."""
    costs = of_threads(splits, plan.decode_threads)
    decode = replace(
        settings.decode,
        cap=plan.cap,
        idle_ms=costs.target.step_ms(),
        busy_ms=costs.target_busy.step_ms(),
    )
    target = replace(settings.target, decode_threads=plan.decode_threads)
    return replace(settings, target=target, decode=decode)
