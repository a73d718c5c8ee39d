"""At the end of a run: a profile that it contradicts is dropped, and drafts that lost are remembered."""

from __future__ import annotations

from dataclasses import replace

from as2d_cli.domain.errors import As2dError
from as2d_cli.profile import store
from as2d_cli.profile.choice import DraftChoice, drift
from as2d_cli.profile.guard import DraftGuard
from as2d_cli.profile.machine_load import Load
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.profile.trust import load_flaw
from as2d_cli.system.device import fixed_work_ms

MIN_WINDOWS = 8
"""Windows of a run that is heard."""
WRONG = 1.5
"""By how much costs must be off for a profile to be dropped: more than the drift that is let pass."""


def write_back(choice: DraftChoice, plan: DraftPlan, guard: DraftGuard, load: Load | None) -> None:
    """Drop profiles of the target that the run contradicts; else note what drafts came to, if they lost.

    `load` is what other programs did meanwhile: beside much of that nothing is written. What cannot be
    written is only noted.
    """
    if guard.costs.windows < MIN_WINDOWS or load_flaw(load) is not None:
        return
    stored = choice.stored()
    now_ms = fixed_work_ms()
    wrong = [profile for profile in stored.values() if _is_contradicted(profile, guard, now_ms)]
    profile = stored.get(plan.drafter or "")
    changed = profile and profile not in wrong and _with_run(profile, guard)
    try:
        for profile in wrong:
            store.forget(profile.key)
            guard.dropped_profiles += 1
        if changed:
            store.keep(changed)
    except As2dError as error:
        choice.note(f"the profile stays as it was: {error.message}")
    if guard.dropped_profiles:
        choice.note(
            "windows took other times than this device's profile says: it is dropped, and measured anew when "
            "the machine is quiet"
        )


def _is_contradicted(profile: store.Profile, guard: DraftGuard, now_ms: float) -> bool:
    plain = profile.scaled(drift(profile, now_ms)).plan.plain
    return plain is not None and guard.costs.contradicts(plain, WRONG)


def _with_run(profile: store.Profile, guard: DraftGuard) -> store.Profile | None:
    """Return the profile with what drafts came to in this run; None if there is nothing to remember."""
    sums = guard.sums
    has_lost = sums.drafted_s > sums.without_s
    if not (sums.drafted_windows and sums.plain_windows) or not (has_lost or profile.record.windows):
        return None
    record = profile.record.after(sums.drafted_windows, sums.drafted_s, sums.without_s)
    return replace(profile, record=record)
