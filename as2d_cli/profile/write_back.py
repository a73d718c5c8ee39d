"""At the end of a run: a profile that it contradicts is dropped, and drafts that lost are remembered."""

from __future__ import annotations

from dataclasses import replace

from as2d_cli.domain.errors import As2dError
from as2d_cli.profile import store
from as2d_cli.profile.choice import DraftChoice, drift
from as2d_cli.profile.guard import DraftGuard
from as2d_cli.profile.machine_load import Load
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.profile.seen import Sightings
from as2d_cli.profile.trust import load_flaw
from as2d_cli.system.device import fixed_work_ms

MIN_WINDOWS = 8
"""Windows of a run that is heard."""
WRONG = 1.5
"""By how much costs must be off for a profile to be dropped: more than the drift that is let pass."""


def write_back(
    choice: DraftChoice,
    plan: DraftPlan,
    guard: DraftGuard,
    load: Load | None,
    sightings: Sightings,
    *,
    doubts: bool = True,
) -> None:
    """Drop profiles of the target that the run contradicts; else note what it saw of the drafter.

    A run that has just measured has no `doubts`: where measuring misleads, every run would measure. `load` is
    what other programs did meanwhile: beside much of that no times are written, but how right the drafter's
    tokens were is. What cannot be written is only noted.
    """
    stored, wrong = choice.stored(), []
    profile = changed = stored.get(plan.drafter or "")
    if guard.costs.windows >= MIN_WINDOWS and load_flaw(load) is None:
        now_ms = fixed_work_ms()
        wrong = [one for one in stored.values() if doubts and _is_contradicted(one, guard, now_ms)]
        changed = None if profile in wrong else profile and _with_run(profile, guard)
    if changed is not None and (seen := sightings.added_to(changed.seen)) != changed.seen:
        changed = changed.after(seen)
    try:
        for one in wrong:
            store.forget(one.key)
            guard.dropped_profiles += 1
        if changed is not None and changed is not profile:
            store.keep(changed)
    except As2dError as error:
        choice.note(f"the profile stays as it was: {error.message}")
    if guard.dropped_profiles:
        choice.note(
            "windows took other times than this device's profile says: it is dropped, and measured anew when "
            "the machine is quiet"
        )


def _is_contradicted(profile: store.Profile, guard: DraftGuard, now_ms: float) -> bool:
    return guard.costs.contradicts(profile.scaled(drift(profile, now_ms)).plain, WRONG)


def _with_run(profile: store.Profile, guard: DraftGuard) -> store.Profile:
    """Return the profile with what drafts came to in this run, itself if there is nothing to remember."""
    sums = guard.sums
    has_lost = sums.drafted_s > sums.without_s
    if not (sums.drafted_windows and sums.plain_windows) or not (has_lost or profile.record.windows):
        return profile
    record = profile.record.after(sums.drafted_windows, sums.drafted_s, sums.without_s)
    return replace(profile, record=record)
