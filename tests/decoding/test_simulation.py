"""The direction of the claims in the algorithm's text, on synthetic errors; deterministic."""

import numpy as np
import pytest

from as2d_cli.decoding import (
    EMPTY,
    Aligner,
    Controller,
    FixedBudget,
    Hazard,
    StepCosts,
    decode,
    finished_draft,
)
from as2d_cli.decoding.virtual import VirtualClock
from as2d_cli.domain.types import Request
from as2d_scripted import Script, ScriptedDrafter, ScriptedTarget

WINDOWS = 15
STAIRS_MS = {1: 4.34, 2: 4.79, 3: 5.16, 4: 5.26, 5: 5.66, 6: 9.52, 8: 10.2, 9: 10.4, 16: 13.4, 24: 15.3}
ROWS_S = StepCosts(STAIRS_MS).ms(24, False) / 1e3
SCRIPT = Script(words=100, seed=11)
TARGET = ScriptedTarget(script=SCRIPT, max_tokens=300)


def simulate(error_rate, policy, mode="hybrid", **drafter_options):
    """Decode windows with complete drafts; return tokens per step and virtual seconds per window."""
    drafter = ScriptedDrafter(script=SCRIPT, error_rate=error_rate, **drafter_options)
    tokens, steps, seconds = 0, 0, []
    for index in range(WINDOWS):
        features = np.full((1, 1), index, np.float32)
        session = TARGET.open(features, Request())
        clock = VirtualClock()
        session._cost = lambda rows, clock=clock: clock.advance(float(ROWS_S[rows - 1]))
        draft = [token.id for token in drafter.draft(features, Request())]
        draft = [TARGET.spec.end_id if token < 0 else token for token in draft]
        reader = EMPTY if policy is None else finished_draft(draft, TARGET.spec.vocab_size)
        budget = policy or FixedBudget(0)
        for step in decode(session, reader, Aligner(mode), budget, end_id=TARGET.spec.end_id, clock=clock):
            tokens += len(step.tokens)
            steps += 1
        seconds.append(clock())
    return tokens / steps, np.array(seconds)


def controller():
    return Controller(StepCosts(STAIRS_MS), Hazard())


def test_at_8_percent_errors_the_hybrid_aligner_commits_over_two_and_a_half_tokens_per_step():
    hybrid, _ = simulate(0.08, FixedBudget(7))
    none, _ = simulate(0.08, FixedBudget(7), mode="none")
    assert hybrid > 2.5
    assert hybrid > 1.5 * none


def test_more_errors_mean_fewer_tokens_per_step():
    rates = [simulate(error, FixedBudget(7))[0] for error in (0.0, 0.03, 0.08, 0.3)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 7


def test_the_jump_pays_when_the_draft_leaves_out_a_section():
    hybrid, _ = simulate(0.0, FixedBudget(7), omit_at=20, omit_words=40)
    edit, _ = simulate(0.0, FixedBudget(7), mode="edit", omit_at=20, omit_words=40)
    assert hybrid > edit


@pytest.mark.parametrize("error_rate", [0.03, 0.08, 0.15, 0.3, 0.6])
def test_the_controller_is_never_slower_than_plain_decoding_in_any_window(error_rate):
    _, drafted = simulate(error_rate, controller())
    _, plain = simulate(error_rate, None)
    assert (drafted < plain).all()


@pytest.mark.parametrize("error_rate", [0.03, 0.08, 0.3])
def test_the_controller_comes_near_the_best_fixed_budget(error_rate):
    _, adaptive = simulate(error_rate, controller())
    best = min(simulate(error_rate, FixedBudget(budget))[1].sum() for budget in (0, 4, 8, 15, 23))
    assert adaptive.sum() < 1.05 * best
