"""Drafts that come to cost time are stopped, and tried again later."""

import pytest

from as2d_cli.domain.types import DecodeStats
from as2d_cli.profile.guard import FIRST_PAUSE, DraftGuard
from as2d_cli.profile.plan import PlainCosts

PLAIN = PlainCosts(encode_ms=600.0, token_ms=5.0)
TOKENS = 80  # plainly 1.0 s


def took(seconds, tokens=TOKENS):
    return DecodeStats(tokens=tokens, steps=tokens, encode_s=0.6, wall_s=seconds)


def run(guard, windows, drafted_s, plain_s=1.0):
    """Decode windows; return how many were drafted."""
    drafted = 0
    for _ in range(windows):
        asks = guard.should_draft()
        drafted += asks
        guard.observe(took(drafted_s if asks else plain_s), drafted=asks)
    return drafted


def test_drafts_that_pay_are_never_stopped():
    guard = DraftGuard(PLAIN)
    assert run(guard, 200, 0.9) == 200
    assert guard.paused_windows == 0


def test_one_window_that_is_dearer_stops_drafts_and_they_are_tried_again_ever_more_seldom():
    guard = DraftGuard(PLAIN)
    assert run(guard, 1, 1.2) == 1
    assert guard.is_paused
    assert run(guard, FIRST_PAUSE - 1, 1.2) == 0
    assert run(guard, 1, 1.2) == 1
    assert run(guard, 2 * FIRST_PAUSE - 1, 1.2) == 0
    assert run(guard, 1, 1.2) == 1


@pytest.mark.parametrize("windows", [130, 1000])
def test_a_drafter_that_only_costs_touches_at_most_two_windows_in_a_hundred(windows):
    guard = DraftGuard(PLAIN)
    assert run(guard, windows, 1.4) / windows <= 0.02


def test_a_drafter_that_turns_good_is_used_again():
    guard = DraftGuard(PLAIN)
    run(guard, 1, 1.2)
    assert run(guard, FIRST_PAUSE + 50, 0.8) == 51


def test_one_slow_window_among_good_ones_is_forgiven():
    guard = DraftGuard(PLAIN)
    run(guard, 10, 0.8)
    run(guard, 1, 1.2)
    assert not guard.is_paused


def test_a_machine_that_has_become_slower_is_known_by_the_windows_without_drafts():
    guard = DraftGuard(PLAIN)
    run(guard, 1, 1.5)
    run(guard, FIRST_PAUSE - 1, 1.5, plain_s=2.0)
    assert run(guard, 50, 1.6) == 50


def test_windows_that_were_in_work_when_drafts_were_stopped_do_not_count_again():
    guard = DraftGuard(PLAIN)
    run(guard, 1, 1.2)
    guard.observe(took(1.4), drafted=True)
    assert run(guard, FIRST_PAUSE - 1, 1.2) == 0
    assert guard.should_draft()


def test_while_one_window_is_tried_the_next_ones_go_without_and_a_lost_trial_is_made_again():
    guard = DraftGuard(PLAIN)
    run(guard, 1, 1.2)
    run(guard, FIRST_PAUSE - 1, 1.2)
    asked = [guard.should_draft() for _ in range(40)]  # nothing comes back
    assert asked[0]
    assert not any(asked[1:4])
    assert sum(asked) == 3
