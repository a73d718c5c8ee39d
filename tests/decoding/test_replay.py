import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from as2d_cli.decoding import (
    Aligner,
    Controller,
    DraftState,
    DraftStream,
    FixedBudget,
    StepCosts,
    decode,
)
from as2d_cli.decoding.replay import RecordedWindow, ReplayCosts, replay
from as2d_cli.decoding.virtual import Duet, PacedReader, VirtualClock
from as2d_cli.domain.errors import DecodeError
from as2d_cli.testing import ScriptedSession

END, VOCAB = 0, 300
TEXT = (*range(1, 60), END)
STAIRS_MS = {1: 5.0, 2: 5.2, 3: 5.5, 5: 8.0, 8: 11.0, 16: 19.0, 24: 27.0}
COSTS = ReplayCosts(StepCosts(STAIRS_MS, STAIRS_MS))


def window(draft=(), publish_ms=(), tokens=TEXT, **options):
    settings = {"end_id": END, "vocab_size": VOCAB, "max_tokens": 200, "encode_ms": 40.0, **options}
    return RecordedWindow(tuple(tokens), draft=tuple(draft), publish_ms=tuple(publish_ms), **settings)


def ready_at(ms, draft=TEXT, **options):
    return window(draft, [ms] * len(draft), **options)


def own(costs=COSTS, cap=23):
    return Controller(StepCosts(costs.steps.table(False), costs.steps.table(True)), cap=cap)


def live(recorded, costs, policy):
    """Decode a scripted window beside a drafter that is paced by the same virtual clock."""
    clock = VirtualClock()
    size = len(recorded.draft)
    stream = DraftStream.in_memory(size, clock)
    stream.reset(1)
    due = [(recorded.draft_encode_ms + ms) / 1e3 for ms in recorded.publish_ms]
    schedule = list(zip(due, recorded.draft, strict=True))
    reader = PacedReader(stream, 1, VOCAB, schedule, recorded.final)
    table = costs.steps.ms(200, False)
    session = ScriptedSession(
        recorded.tokens,
        prompt=(1, 2),
        vocab_size=VOCAB,
        max_tokens=recorded.max_tokens,
        cost=lambda rows: clock.advance(float(table[rows - 1]) / 1e3),
    )
    clock.advance(recorded.encode_ms / 1e3)
    steps = list(decode(session, reader, Aligner(), policy, end_id=END, clock=clock))
    return tuple(steps), clock() * 1e3


def test_plain_decoding_takes_the_encoder_and_one_single_row_pass_per_token():
    result = replay(ready_at(0), COSTS, FixedBudget(0), drafted=False)
    assert result.total_ms == pytest.approx(40 + 5 * len(TEXT), rel=1e-12)
    assert result.encoded_ms == pytest.approx(40, rel=1e-12)
    assert len(result.steps) == len(TEXT)


def test_control_time_counts_once_per_step():
    costs = ReplayCosts(COSTS.steps, control_ms=0.5)
    result = replay(window(), costs, FixedBudget(0), drafted=False)
    assert result.total_ms == pytest.approx(40 + 5.5 * len(TEXT))
    assert sum(step.ms for step in result.steps) == pytest.approx(5 * len(TEXT))


def test_a_finished_perfect_draft_takes_full_blocks():
    result = replay(ready_at(0), COSTS, FixedBudget(7))
    assert [len(step.tokens) for step in result.steps] == [8] * 7 + [4]
    assert result.total_ms == pytest.approx(40 + 7 * 11 + 8)


drafts = st.lists(st.tuples(st.integers(0, 3), st.integers(0, VOCAB - 1), st.floats(0, 30)), max_size=80)
policies = st.sampled_from([lambda: FixedBudget(3), lambda: FixedBudget(30), own])


@settings(max_examples=150)
@given(drafts, policies, st.integers(0, 20), st.sampled_from([s for s in DraftState if s.finished]))
def test_replay_and_a_live_run_on_the_same_virtual_clock_are_equal_step_by_step(draft, policy, words, final):
    tokens = (*range(1, 20 + words), END)
    ids = [tokens[at % len(tokens)] if wrong else token for at, (wrong, token, _) in enumerate(draft)]
    times = np.cumsum([gap for _, _, gap in draft]).tolist()
    recorded = window(ids, times, tokens, draft_encode_ms=12.5, final=final)
    result = replay(recorded, COSTS, policy())
    assert (result.steps, result.total_ms) == live(recorded, COSTS, policy())


def test_a_text_that_reached_the_limit_is_replayed_to_the_limit():
    recorded = ready_at(0, tokens=TEXT[:-1], max_tokens=len(TEXT) - 1)
    assert replay(recorded, COSTS, FixedBudget(7)).tokens == TEXT[:-1]


def test_a_wrong_end_id_is_noticed():
    with pytest.raises(DecodeError, match="another text"):
        replay(window(end_id=5), COSTS, FixedBudget(0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"draft": (1, 2), "publish_ms": (1.0,)},
        {"draft": (1, 2), "publish_ms": (2.0, 1.0)},
        {"draft": (1,), "publish_ms": (-1.0,)},
        {"tokens": ()},
        {"max_tokens": 3},
        {"encode_ms": -1.0},
        {"final": DraftState.DRAFTING},
    ],
)
def test_a_recording_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(DecodeError):
        window(**wrong)


def test_a_drafter_at_work_makes_encoder_and_passes_dearer():
    steps = StepCosts({1: 5.0}, {1: 8.0})
    silent = window((7,), (10_000.0,))
    result = replay(silent, ReplayCosts(steps, encode_stretch=1.5), FixedBudget(0))
    assert result.encoded_ms == pytest.approx(60)
    # cancelled after 24 tokens for which nothing was ready, it slows the rest no more
    assert result.total_ms == pytest.approx(60 + 24 * 8 + (len(TEXT) - 24) * 5)


def test_a_target_at_work_stretches_the_publish_times():
    slower = ReplayCosts(COSTS.steps, draft_stretch=1.5)
    fast, slow = (replay(ready_at(98), costs, FixedBudget(0)).steps for costs in (COSTS, slower))
    first_ready = [next(step.began_s for step in steps if step.available) for steps in (fast, slow)]
    assert first_ready == pytest.approx([0.1, 0.15])  # the first passes after 98 ms, and after 147


def test_a_head_start_runs_undisturbed_before_the_targets_time():
    recorded = window(TEXT, [2.0 * (at + 1) for at in range(60)], draft_encode_ms=30.0)
    costs = ReplayCosts(COSTS.steps, draft_stretch=2.0)
    alone, ahead = (replay(recorded, costs, FixedBudget(7), head_start_ms=lead) for lead in (0, 61))
    # 61 ms, half of the 40 that the target encodes, and 30 of its own encoder less: a token every 2 ms
    assert (alone.steps[0].available, ahead.steps[0].available) == (0, 25)
    assert ahead.total_ms < alone.total_ms


def test_every_pass_begins_where_the_last_ended_plus_control():
    costs = ReplayCosts(COSTS.steps, control_ms=0.25)
    result = replay(ready_at(50), costs, own())
    begins = [step.began_s * 1e3 for step in result.steps]
    assert begins[0] == pytest.approx(result.encoded_ms)
    ends = [begin + step.ms for begin, step in zip(begins, result.steps, strict=True)]
    assert [*begins[1:], result.total_ms] == pytest.approx([end + 0.25 for end in ends])


def test_the_true_costs_are_left_alone_by_what_the_policy_learns():
    before = (COSTS.steps.table(False), COSTS.steps.table(True))
    replay(ready_at(0), COSTS, own())
    assert (COSTS.steps.table(False), COSTS.steps.table(True)) == before


def test_a_noisy_draft_costs_more_than_a_right_one_and_less_than_none():
    draw = random.Random(1)
    noisy = [token if draw.random() < 0.8 else 250 for token in TEXT]
    right, wrong = (replay(ready_at(0, draft), COSTS, own()).total_ms for draft in (TEXT, noisy))
    assert right < wrong < replay(window(), COSTS, own()).total_ms


# -- two clocks --------------------------------------------------------------------------------------


def test_while_both_work_the_drafters_time_goes_slower():
    duet = Duet(end_s=1.0, stretch=2.0)
    duet.work(0.25, 0.5)
    assert (duet.target(), duet.drafter(), duet.drafting) == (0.5, 0.25, True)


def test_where_the_drafter_ends_the_target_goes_on_at_its_own_pace():
    duet = Duet(end_s=0.125, stretch=2.0)
    duet.work(0.25, 0.5)  # half of the work beside the drafter, half alone
    assert (duet.target(), duet.drafting) == (0.25 + 0.125, False)
    duet.work(0.25, 0.5)
    assert duet.target() == 0.625


def test_a_stopped_drafter_slows_nothing():
    duet = Duet(end_s=10.0)
    duet.work(0.25, 0.5)
    duet.stop_drafting()
    duet.work(0.25, 0.5)
    assert duet.target() == 0.75


def test_work_that_costs_the_same_idle_and_busy_takes_exactly_that():
    for end_s in (0.0, 0.01, 0.0123, 0.1, 5.0):
        duet = Duet(end_s)
        duet.work(0.1, 0.1)
        assert duet.target() == 0.1
