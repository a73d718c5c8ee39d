"""What undrafted windows say of the present costs, and of a profile."""

import pytest

from as2d_cli.domain.types import DecodeStats
from as2d_cli.profile.plan import PlainCosts
from as2d_cli.profile.run_costs import RECENT, RunCosts

PREDICTED = PlainCosts(encode_ms=600.0, token_ms=5.0)


def plain(costs, windows, *, encode_s=0.6, token_s=0.005, audio_s=30.0):
    for _ in range(windows):
        stats = DecodeStats(
            tokens=100,
            steps=100,
            encode_s=encode_s,
            verify_s=100 * token_s,
            wall_s=encode_s + 100 * token_s,
        )
        costs.add(stats, drafted=False, audio_s=audio_s)


def test_the_profile_is_all_there_is_before_a_window_went_without_drafts():
    costs = RunCosts(PREDICTED)
    costs.add(DecodeStats(tokens=100, encode_s=2.0, wall_s=9.0), drafted=True, audio_s=30.0)
    assert costs.plain() == PREDICTED
    assert costs.sums().without_s == pytest.approx(1.1)


def test_costs_are_those_of_the_last_windows():
    costs = RunCosts(PREDICTED)
    plain(costs, 20)
    plain(costs, RECENT, encode_s=1.2, token_s=0.01)
    now = costs.plain()
    assert (now.encode_ms, now.token_ms) == pytest.approx((1200.0, 10.0))


def test_windows_with_little_to_encode_do_not_make_encoding_cheap():
    costs = RunCosts(PREDICTED)
    plain(costs, 3)
    plain(costs, 4, encode_s=0.1, audio_s=5.0)
    assert costs.plain().encode_ms == pytest.approx(600.0)
    assert not costs.contradicts(PREDICTED, 1.5)


@pytest.mark.parametrize(
    "wrong", [{"encode_s": 0.3}, {"encode_s": 1.2}, {"token_s": 0.002}, {"token_s": 0.02}]
)
def test_a_prediction_that_is_far_off_is_contradicted(wrong):
    costs = RunCosts(PREDICTED)
    plain(costs, 4, **wrong)
    assert costs.contradicts(PREDICTED, 1.5)


@pytest.mark.parametrize("near", [{"encode_s": 0.8}, {"token_s": 0.004}])
def test_a_prediction_that_is_a_little_off_is_not(near):
    costs = RunCosts(PREDICTED)
    plain(costs, 4, **near)
    assert not costs.contradicts(PREDICTED, 1.5)


def test_a_first_window_on_cold_models_and_one_that_was_disturbed_contradict_nothing():
    costs = RunCosts(PREDICTED)
    plain(costs, 1, encode_s=3.0, token_s=0.02)
    plain(costs, 5)
    plain(costs, 1, token_s=0.05)
    assert not costs.contradicts(PREDICTED, 1.5)
