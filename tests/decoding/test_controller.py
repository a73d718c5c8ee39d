import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.decoding import Controller, FixedBudget, Hazard, StepCosts
from as2d_cli.decoding.controller import bucket_of, tally
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import Step

STAIRS = {1: 4.34, 2: 4.79, 3: 5.16, 4: 5.26, 5: 5.66, 6: 9.52, 8: 10.2, 12: 15.0, 16: 13.4, 24: 15.3}


def taught(run_length, times):
    """A hazard that has seen `times` runs of `run_length` right tokens and then a wrong one."""
    hazard = Hazard()
    for _ in range(times):
        hazard.learn(0, run_length + 1, run_length)
    return hazard


def test_the_prior_hazard_rises_with_the_run():
    assert Hazard().rates == pytest.approx([0.5, 0.6, 0.75, 0.85, 0.9, 0.93, 0.95])


def test_trials_land_in_the_buckets_of_the_growing_run():
    hazard = Hazard()
    hazard.learn(2, 4, 3)  # run lengths 2, 3, 4 right, 5 wrong
    trials, right = np.split(np.array(hazard.to_counts()), 2)
    assert (trials.tolist(), right.tolist()) == ([0, 0, 1, 2, 1, 0, 0], [0, 0, 1, 2, 0, 0, 0])


def test_steps_are_tallied_where_a_hazard_counts_them():
    tested = Step((7, 8, 9), 4, 2, 4, 1.0, run=2, tested=4, right=3)
    trials, right = tally([tested, Step((7,), 0, 0, 0, 1.0), tested])
    assert (trials, right) == ((0, 0, 2, 4, 2, 0, 0), (0, 0, 2, 4, 0, 0, 0))
    assert tally([Step((7,), 0, 0, 0, 1.0)]) == ((), ())


def test_the_bucket_of_a_run_is_where_its_next_token_is_counted():
    assert [bucket_of(run) for run in (0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 400)] == [
        0,
        1,
        2,
        3,
        3,
        4,
        4,
        5,
        5,
        6,
        6,
    ]


def test_the_less_was_seen_the_greater_the_doubts():
    prior, little, much = Hazard(), taught(6, 3), taught(6, 50)
    for none, some, most in zip(prior.doubts[:4], little.doubts[:4], much.doubts[:4], strict=True):
        assert none > some > most > 0
    assert prior.doubts[0] == pytest.approx((0.25 / 7) ** 0.5)


def test_expected_tokens_are_one_plus_the_survival_sums():
    hazard = Hazard()
    assert hazard.expected_tokens(0, 3) == pytest.approx([1, 1.5, 1.8, 2.025])
    assert hazard.expected_tokens(40, 2) == pytest.approx([1, 1.95, 1.95 + 0.95**2])


def test_a_hazard_survives_being_stored():
    hazard = taught(6, 20)
    assert Hazard(hazard.to_counts()).rates == hazard.rates


@pytest.mark.parametrize("counts", [[1.0] * 13, [0.0] * 7 + [1.0] * 7, [float("nan")] * 14])
def test_a_stored_hazard_that_makes_no_sense_is_refused(counts):
    with pytest.raises(DecodeError, match="hazard"):
        Hazard(counts)


def test_old_experience_fades():
    hazard = taught(16, 200)
    for _ in range(600):
        hazard.learn(0, 1, 0)
    assert hazard.rates[0] < 0.1


def test_a_good_draft_is_verified_up_to_a_stair_edge():
    controller = Controller(StepCosts(STAIRS), taught(40, 100))
    assert controller.choose(100, 17, False) == 23
    assert controller.choose(7, 17, False) == 4, "8 rows cost almost twice as much as 5"


def test_a_hopeless_draft_is_not_verified_at_all():
    controller = Controller(StepCosts(STAIRS), taught(0, 200))
    assert controller.choose(20, 0, False) == 0


def test_a_flat_cost_takes_everything_up_to_the_cap():
    assert Controller(StepCosts({1: 5, 64: 5}), cap=40).choose(100, 0, False) == 40


@given(st.integers(-3, 60), st.integers(0, 100), st.booleans(), st.integers(0, 30))
def test_the_choice_never_exceeds_what_is_available_or_the_cap(available, run, drafting, cap):
    chosen = Controller(StepCosts(STAIRS), cap=cap).choose(available, run, drafting)
    assert 0 <= chosen <= max(min(available, cap), 0)


def test_an_unmeasured_row_count_lies_between_its_neighbours():
    ms = StepCosts(STAIRS).ms(24, False)
    assert ms[3 - 1] == pytest.approx(5.16)
    assert ms[6 - 1] < ms[7 - 1] <= ms[8 - 1]


def test_costs_never_fall_with_rows_because_fewer_rows_could_be_padded():
    ms = StepCosts(STAIRS).ms(12, False)
    assert ms[12 - 1] == pytest.approx(13.4), "16 rows measured cheaper than 12"
    assert (np.diff(StepCosts(STAIRS).ms(40, False)) >= 0).all()


def test_costs_scale_to_a_single_measurement():
    slow, usual = StepCosts({1: 530.0}).ms(24, False), StepCosts().ms(24, False)
    assert slow == pytest.approx(usual * 100)


def test_a_busy_table_not_measured_follows_the_idle_one_in_its_gaps():
    costs = StepCosts(STAIRS)
    assert costs.ms(5, True) == pytest.approx(costs.ms(5, False))
    costs.update(1, 6.0, True)
    assert costs.ms(24, True) == pytest.approx(costs.ms(24, False) * 6.0 / STAIRS[1])
    assert costs.table(True) == {1: 6.0}
    assert costs.table(False) == STAIRS


def test_repeated_measurements_move_the_cost_and_one_outlier_hardly_does():
    costs = StepCosts(STAIRS)
    costs.update(5, 5000.0, False)
    assert costs.table(False)[5] < 1.2 * STAIRS[5]
    for _ in range(60):
        costs.update(5, 8.0, False)
    assert costs.table(False)[5] == pytest.approx(8.0, rel=0.01)


@pytest.mark.parametrize("ms", [0.0, -1.0, float("nan"), float("inf")])
def test_a_clock_that_did_not_tell_teaches_nothing(ms):
    costs = StepCosts(STAIRS)
    costs.update(5, ms, False)
    assert costs.table(False) == STAIRS


@pytest.mark.parametrize("table", [{0: 5.0}, {1: 0.0}, {1: float("nan")}, {1: float("inf")}])
def test_an_impossible_cost_table_is_refused(table):
    with pytest.raises(DecodeError, match="cannot take"):
        StepCosts(busy=table)


def test_the_controller_learns_through_its_one_interface():
    controller = Controller()
    controller.learn(0, 1, 1)
    controller.timed(1, 7.0, True)
    assert controller.hazard.to_counts()[0] == 1
    assert controller.costs.table(True) == {1: 7.0}


def test_a_fixed_budget_is_kept_whatever_happens():
    policy = FixedBudget(4)
    policy.learn(0, 100, 0)
    policy.timed(5, 1e9, True)
    assert [policy.choose(available, 0, True) for available in (0, 3, 9)] == [0, 3, 4]


def test_a_negative_fixed_budget_is_refused():
    with pytest.raises(DecodeError, match="-1"):
        FixedBudget(-1)
