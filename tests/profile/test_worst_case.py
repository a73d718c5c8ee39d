"""What drafts that are of no use cost a run: the same loop, controller and guard on a virtual clock.

A profile knows what a drafter costs, not what it will say. So these are chosen, as they look cheap, and
have to be found out while the run goes on.
"""

import random
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from as2d_cli.decoding import Controller, DraftState, StepCosts
from as2d_cli.decoding.replay import RecordedWindow, replay
from as2d_cli.domain.types import DecodeStats
from as2d_cli.engine.pair import SLOTS
from as2d_cli.profile.guard import DraftGuard
from as2d_cli.profile.plan import plan_drafts, replay_costs

END, WINDOWS = 0, 130


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


def run(adversary, costs):
    """Return what each window takes with drafts as the guard has them, and plainly, both shape (windows,)."""
    plan = plan_drafts([costs])
    assert plan.drafting, "it looks cheap"
    machine, guard = replay_costs(costs), DraftGuard(plan.plain)
    known = machine.steps
    policy = Controller(StepCosts(known.table(False), known.table(True)), cap=plan.cap)
    handed_out, took = deque(), []
    for number in range(WINDOWS):
        while len(handed_out) < SLOTS:
            handed_out.append("drafted" if guard.should_draft() else "plain")
        how, one = handed_out.popleft(), window(adversary, number)
        drafted = how != "plain"
        ready = replace(one, publish_ms=(0.0,) * len(one.draft), draft_encode_ms=0.0)
        found = replay(ready if how == "begun" else one, machine, policy, drafted=drafted)
        stats = DecodeStats(
            tokens=len(one.tokens), encode_s=found.encoded_ms / 1e3, wall_s=found.total_ms / 1e3
        )
        if guard.observe(stats, drafted=drafted):  # of windows handed out the target has begun the first
            handed_out = deque("begun" if at == 0 else "plain" for at in range(len(handed_out)))
        took.append((found.total_ms, replay(one, machine, Controller(), drafted=False).total_ms))
    return np.array(took).T


@pytest.mark.parametrize("stretch", [1.0, 1.15])
@pytest.mark.parametrize("adversary", [wrong, looping, slow, late, dying, another_windows])
def test_a_drafter_of_no_use_makes_few_windows_slower_and_the_run_hardly(pair_costs, adversary, stretch):
    ours, plain = run(adversary, pair_costs(100.0, 0.2, stretch))
    assert (ours > (1 + 1e-9) * plain).mean() <= 0.02
    assert ours.sum() <= 1.03 * plain.sum()
