"""Drafts that come to cost time are stopped and tried again later; some windows go without, to compare."""

import random

import pytest

from as2d_cli.domain.types import DecodeStats
from as2d_cli.profile.guard import FIRST_PAUSE, DraftGuard, guard_of
from as2d_cli.profile.plan import DraftPlan, PlainCosts

PLAIN = PlainCosts(encode_ms=600.0, token_ms=5.0)
TOKENS = 80  # plainly 1.0 s
OPENING = 3  # plain, drafted, plain
PAUSE = 20  # after a loss of 20 %: to try that again every 20 windows costs 1 % of the time


def took(seconds, tokens=TOKENS):
    return DecodeStats(tokens=tokens, steps=tokens, encode_s=0.6, wall_s=seconds)


def run(guard, windows, drafted_s, plain_s=1.0):
    """Decode windows; return which were drafted."""
    drafted = []
    for _ in range(windows):
        asks = guard.should_draft()
        drafted.append(asks)
        guard.observe(took(drafted_s if asks else plain_s), drafted=asks, audio_s=30.0)
    return drafted


def lose(guard):
    """Decode a run's first windows with drafts that cost time."""
    assert run(guard, OPENING - 1, 1.2) == [False, True]
    assert guard.is_paused


def test_drafts_that_pay_are_never_stopped_and_windows_without_are_few():
    guard = DraftGuard(PLAIN)
    drafted = run(guard, 200, 0.8)
    assert drafted[:4] == [False, True, False, True]
    assert drafted[4:].count(False) / 200 <= 0.04
    assert not guard.sums.paused_windows


def test_the_more_drafts_save_the_fewer_windows_go_without():
    few, many = (run(DraftGuard(PLAIN), 100, drafted_s).count(False) for drafted_s in (0.5, 0.95))
    assert few == 2
    assert many > 8


def test_a_window_that_is_much_dearer_stops_drafts_and_they_are_tried_again_ever_more_seldom():
    guard = DraftGuard(PLAIN)
    lose(guard)
    for pause in (PAUSE, 8 * FIRST_PAUSE, 512, 512):
        assert not any(run(guard, pause - 1, 1.2))
        assert run(guard, 1, 1.2) == [True]


def test_a_small_loss_is_known_after_some_windows():
    guard = DraftGuard(PLAIN)
    drafted = run(guard, 60, 1.03)
    assert guard.is_paused
    assert 2 <= sum(drafted) <= 6


def test_the_profile_counts_only_until_a_window_went_without_drafts():
    """It says that a window takes 5 s plainly; drafted ones take 1.5 s, plain ones 1 s."""
    guard = DraftGuard(PlainCosts(3000.0, 25.0))
    drafted = run(guard, 60, 1.5)
    assert sum(drafted) <= 3


def test_a_first_window_on_cold_models_is_forgotten_once_another_went_without():
    guard = DraftGuard(PLAIN)
    run(guard, 1, 1.1, plain_s=1.6)
    assert not guard.is_paused
    run(guard, 2, 1.1)
    assert guard.is_paused


@pytest.mark.parametrize("windows", [130, 1000])
def test_a_drafter_that_only_costs_touches_at_most_two_windows_in_a_hundred(windows):
    assert sum(run(DraftGuard(PLAIN), windows, 1.4)) / windows <= 0.02


def test_chance_does_not_stop_good_drafts_for_long():
    draw = random.Random(1)
    shares = []
    for _ in range(20):
        guard, drafted = DraftGuard(PLAIN), 0
        for _ in range(100):
            asks = guard.should_draft()
            drafted += asks
            guard.observe(took((0.8 if asks else 1.0) * draw.gauss(1, 0.1)), drafted=asks, audio_s=30.0)
        shares.append(drafted / 100)
    assert sum(shares) / len(shares) >= 0.9


def test_a_drafter_that_turns_good_is_used_again():
    guard = DraftGuard(PLAIN)
    lose(guard)
    assert sum(run(guard, PAUSE + 50, 0.8)) >= 48


def test_a_window_that_takes_a_little_longer_among_good_ones_is_forgiven():
    guard = DraftGuard(PLAIN)
    run(guard, 10, 0.8)
    run(guard, 1, 1.2)
    assert not guard.is_paused


def test_a_machine_that_has_become_slower_is_known_by_the_windows_without_drafts():
    guard = DraftGuard(PLAIN)
    lose(guard)
    run(guard, PAUSE - 1, 1.5, plain_s=2.0)
    assert sum(run(guard, 50, 1.6, plain_s=2.0)) >= 47


def test_less_audio_to_encode_is_no_gain():
    guard = DraftGuard(PLAIN)
    run(guard, OPENING, 0.9)
    short = DecodeStats(tokens=TOKENS, steps=TOKENS, encode_s=0.1, wall_s=0.7)  # plainly 0.5 s
    for _ in range(6):
        guard.observe(short, drafted=True, audio_s=5.0)
    assert guard.is_paused


def test_windows_that_were_in_work_when_drafts_were_stopped_do_not_count_again():
    guard = DraftGuard(PLAIN)
    lose(guard)
    guard.observe(took(1.4), drafted=True, audio_s=30.0)
    assert not any(run(guard, PAUSE - 1, 1.2))
    assert guard.should_draft()


def test_while_one_window_is_tried_the_next_ones_go_without_and_a_lost_trial_is_made_again():
    guard = DraftGuard(PLAIN)
    lose(guard)
    run(guard, PAUSE - 1, 1.2)
    asked = [guard.should_draft() for _ in range(40)]  # nothing comes back
    assert asked[0]
    assert not any(asked[1:4])
    assert sum(asked) == 3


def test_where_windows_without_drafts_need_other_threads_they_are_two_at_first_and_then_rare():
    drafted = run(DraftGuard(PLAIN, shares_threads=True), 100, 0.9)
    assert drafted == [False, False, *[True] * 98]


def test_a_run_without_drafts_is_only_watched():
    guard = guard_of(DraftPlan(False, "no gain", plain=PLAIN))
    assert not any(run(guard, 40, 0.5))
    assert (guard.sums.plain_windows, guard.sums.paused_windows) == (40, 0)
    assert guard_of(DraftPlan(True, "costs nothing")) is None


def test_the_run_is_summed_up_by_what_windows_without_drafts_took():
    guard = DraftGuard(PlainCosts(3000.0, 25.0))
    run(guard, 3, 0.8)
    sums = guard.sums + guard.sums
    assert (sums.plain_windows, sums.drafted_windows) == (4, 2)
    assert (sums.plain_s, sums.drafted_s, sums.without_s) == pytest.approx((4.0, 1.6, 2.0))
