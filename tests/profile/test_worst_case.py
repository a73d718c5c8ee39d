"""What useless drafts and wrong profiles cost a run: the same loop, controller and guard on a virtual clock.

A profile knows what a drafter costs, not what it will say, and may itself be wrong. So drafts are chosen, as
they look cheap, and have to be found out while the run goes on.
"""

import random
from collections import deque
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from as2d_cli.decoding import Controller, DraftState, StepCosts
from as2d_cli.decoding.replay import RecordedWindow, replay
from as2d_cli.domain.types import DecodeStats
from as2d_cli.engine.measure import ROWS
from as2d_cli.engine.pair import SLOTS
from as2d_cli.profile import plan as module
from as2d_cli.profile.guard import DraftGuard
from as2d_cli.profile.plan import forecast, replay_costs

END = 0


def plan_drafts(splits):
    return module.plan_drafts(forecast(splits), windows=60)


def wrong(text, draw):
    return [3000 + draw.randrange(500) for _ in text], 0.2, 0.0


def looping(text, draw):
    return [*text[:4], *[3000, 3001, 3002] * 60], 0.2, 0.0


def slow(text, draw):
    return [3000 + draw.randrange(500) for _ in text], 40.0, 0.0


def late(text, draw):
    return list(text), 0.2, 3000.0


def dying(text, draw):
    return list(text[:5]), 0.2, 0.0


def another_windows(text, draw):
    return draw.choices(range(1, 200), [1 / rank for rank in range(1, 200)], k=len(text)), 0.2, 0.0


def good(text, draw):
    return [token if draw.random() < 0.92 else 3000 for token in text], 0.2, 0.0


@cache
def window(adversary, number):
    draw = random.Random(number)
    length = draw.randrange(15, 160)
    text = [*draw.choices(range(1, 200), [1 / rank for rank in range(1, 200)], k=length), END]
    draft, pace_ms, delay_ms = adversary(text, draw)
    return RecordedWindow(
        tokens=tuple(text),
        end_id=END,
        vocab_size=4000,
        max_tokens=200,
        encode_ms=600.0,
        draft=tuple(draft),
        publish_ms=tuple((delay_ms + pace_ms * np.arange(1, len(draft) + 1)).tolist()),
        draft_encode_ms=100.0,
        final=DraftState.FAILED if adversary is dying else DraftState.ENDED,
    )


@dataclass(frozen=True)
class Ran:
    """What each window took, and takes plainly, both shape (windows,); how many were drafted."""

    ours: np.ndarray
    plain: np.ndarray
    drafted: int

    @property
    def cost(self):
        """Time beside always plain decoding."""
        return self.ours.sum() / self.plain.sum()

    @property
    def slower(self):
        """Share of windows that took clearly longer."""
        return (self.ours > 1.02 * self.plain).mean()


def run(adversary, costs, plan, profile=None, *, windows=130, noise=0.0, guarded=True, restless=False):
    """Run on a machine with these costs what was planned by a `profile`, by default the right one.

    Each window takes a random share longer or shorter, whichever way it is decoded. A `restless` drafter is
    always at work, on later windows, and slows the target all the time.
    """
    assert plan.drafting, "it looks cheap"
    machine, known = replay_costs(costs), replay_costs(profile or costs).steps
    busy = costs.target_busy.step_ms()
    beside = replace(machine, steps=StepCosts(busy, busy)) if restless else machine
    guard = DraftGuard(plan.plain)
    policy = Controller(StepCosts(known.table(False), known.table(True)), cap=plan.cap)
    paces = np.random.default_rng(1).normal(1.0, noise, windows).clip(0.7, 1.3)
    handed_out, took, drafts = deque(), [], 0
    for number in range(windows):
        while len(handed_out) < SLOTS:
            handed_out.append("drafted" if guard.should_draft() or not guarded else "plain")
        how, one = handed_out.popleft(), window(adversary, number)
        drafted = how != "plain"
        ready = replace(one, publish_ms=(0.0,) * len(one.draft), draft_encode_ms=0.0)
        if restless and drafted:
            one = replace(one, encode_ms=costs.target_busy.encode_ms)
        found = replay(
            ready if how == "begun" else one, beside if drafted else machine, policy, drafted=drafted
        )
        plain = replay(window(adversary, number), machine, Controller(), drafted=False)
        pace_s = paces[number] / 1e3
        stats = DecodeStats(
            tokens=len(one.tokens), encode_s=found.encoded_ms * pace_s, wall_s=found.total_ms * pace_s
        )
        if guard.observe(stats, drafted=drafted, audio_s=30.0) and guarded:
            begun = handed_out[0] == "drafted"  # of windows handed out the target is at the first
            handed_out = deque(["begun" if begun else "plain", *["plain"] * (len(handed_out) - 1)])
        drafts += drafted
        took.append((stats.wall_s, plain.total_ms * pace_s))
    return Ran(*np.array(took).T, drafts)


ADVERSARIES = [wrong, looping, slow, late, dying, another_windows]


@pytest.mark.parametrize("stretch", [1.0, 1.15])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_a_drafter_of_no_use_makes_few_windows_slower_and_the_run_hardly(pair_costs, adversary, stretch):
    costs = pair_costs(100.0, 0.2, stretch)
    ran = run(adversary, costs, plan_drafts([costs]))
    assert ran.slower <= 0.06, "small losses are watched for a few windows: they may be chance"
    assert ran.cost <= 1.005


@pytest.mark.parametrize("stretch", [1.0, 1.15])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_windows_that_differ_by_chance_hide_a_useless_drafter_only_for_a_while(
    pair_costs, adversary, stretch
):
    costs = pair_costs(100.0, 0.2, stretch)
    assert run(adversary, costs, plan_drafts([costs]), windows=60, noise=0.1).cost <= 1.03


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("stretch", [1.0, 1.15])
def test_good_drafts_lose_little_by_windows_that_go_without(pair_costs, stretch, noise):
    costs = pair_costs(100.0, 0.2, stretch)
    plan = plan_drafts([costs])
    ours = run(good, costs, plan, windows=60, noise=noise)
    assert ours.drafted >= 55
    assert ours.ours.sum() <= 1.03 * run(good, costs, plan, windows=60, noise=noise, guarded=False).ours.sum()


def encode(costs, factor):
    """Return the costs with another figure for the target's encoder."""
    return replace(
        costs,
        target=replace(costs.target, encode_ms=factor * costs.target.encode_ms),
        target_busy=replace(costs.target_busy, encode_ms=factor * costs.target_busy.encode_ms),
    )


def rows(number):
    """Make a change to the figure for passes of so many rows."""

    def changed(target, factor):
        tables = ({**table, number: factor * table[number]} for table in (target.short_ms, target.long_ms))
        return replace(target, **dict(zip(("short_ms", "long_ms"), tables, strict=True)))

    def change(costs, factor):
        return replace(
            costs, target=changed(costs.target, factor), target_busy=changed(costs.target_busy, factor)
        )

    return change


def of_drafter(figure):
    """Make a change to a figure of the drafter."""

    def changed(drafter, factor):
        return replace(drafter, **{figure: factor * getattr(drafter, figure)})

    def change(costs, factor):
        return replace(
            costs, drafter=changed(costs.drafter, factor), drafter_busy=changed(costs.drafter_busy, factor)
        )

    return change


FIGURES = {
    "encode": encode,
    **{f"{number} rows": rows(number) for number in ROWS},
    "drafter's encoder": of_drafter("encode_ms"),
    "drafter's token": of_drafter("token_ms"),
    "target beside the drafter": lambda costs, by: replace(costs, target_busy=costs.target_busy.scaled(by)),
    "drafter beside the target": lambda costs, by: replace(costs, drafter_busy=costs.drafter_busy.scaled(by)),
    "target": lambda costs, by: replace(
        costs, target=costs.target.scaled(by), target_busy=costs.target_busy.scaled(by)
    ),
    "drafter": lambda costs, by: replace(
        costs, drafter=costs.drafter.scaled(by), drafter_busy=costs.drafter_busy.scaled(by)
    ),
    "both beside each other": lambda costs, by: replace(
        costs, target_busy=costs.target_busy.scaled(by), drafter_busy=costs.drafter_busy.scaled(by)
    ),
    "all": lambda costs, by: costs.scaled(by),
}


@pytest.mark.parametrize("factor", [0.2, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("figure", FIGURES)
def test_a_wrong_profile_costs_a_run_hardly_more_than_plain_decoding(pair_costs, figure, factor):
    """On a machine where drafts cost little, and on one where nobody would draft who knew it."""
    for costs, restless in ((pair_costs(100.0, 0.2, 1.15), False), (pair_costs(300.0, 3.0, 2.0), True)):
        profile = FIGURES[figure](costs, factor)
        plan = plan_drafts([profile])
        if not plan.drafting:
            continue
        for adversary in (good, wrong):
            assert run(adversary, costs, plan, profile, windows=60, noise=0.1, restless=restless).cost <= 1.03


def test_a_profile_taken_under_load_is_found_out_in_a_few_windows(pair_costs):
    """It does not show that the two models slow each other down, as both were slow already."""
    costs = pair_costs(300.0, 3.0, 2.0)
    profile = FIGURES["both beside each other"](costs, 0.5)
    plan = plan_drafts([profile])
    assert run(good, costs, plan, profile, windows=60, guarded=False, restless=True).cost > 1.5
    ran = run(good, costs, plan, profile, windows=60, noise=0.1, restless=True)
    assert ran.drafted <= 3
    assert ran.cost <= 1.03
