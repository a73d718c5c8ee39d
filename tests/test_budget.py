"""Whether drafts pay follows from measured costs, by replaying windows on them."""

from dataclasses import replace

import pytest

from as2d_cli.budget import CAPS, choose_budget


def test_a_drafter_that_costs_nothing_is_used(pair_costs):
    budget = choose_budget(pair_costs(5.0, 0.2))
    assert budget.drafting
    assert budget.cap in CAPS
    assert budget.drafted_s < budget.plain_s


def test_a_drafter_on_cores_that_are_all_busy_is_not(pair_costs):
    budget = choose_budget(pair_costs(500.0, 3.0, stretch=2.0))
    assert not budget.drafting
    assert budget.cap == 0
    assert "would cost" in budget.reason


def test_a_drafter_slower_than_the_target_is_not_used_even_with_cores_to_spare(pair_costs):
    assert not choose_budget(pair_costs(900.0, 12.0)).drafting


def test_the_more_the_models_slow_each_other_the_longer_the_prediction(pair_costs):
    predicted = [choose_budget(pair_costs(200.0, 1.5, stretch)).drafted_s for stretch in (1.0, 1.3, 1.8)]
    assert predicted == sorted(predicted)
    assert predicted[0] < predicted[2]


def test_plain_decoding_is_predicted_from_single_rows(pair_costs):
    dense = 171  # tokens of the densest window, its end included
    costs = pair_costs(5.0, 0.2)
    budget = choose_budget(costs)
    one_row = costs.target.short_ms[1]
    assert budget.plain_s <= (600 + dense * one_row) / 1e3
    assert budget.plain_s >= (600 + 100 * one_row) / 1e3


def test_a_pair_that_does_not_fit_the_memory_is_not_used(pair_costs):
    cheap = pair_costs(5.0, 0.2)
    assert choose_budget(cheap, memory_limit_bytes=800_000_000).drafting
    refused = choose_budget(cheap, memory_limit_bytes=600_000_000)
    assert not refused.drafting
    assert "700 MB" in refused.reason


@pytest.mark.parametrize("field", ["short_ms", "long_ms"])
def test_a_step_costs_the_mean_of_few_and_many_cached_tokens(pair_costs, field):
    even = pair_costs(5.0, 0.2).target
    uneven = replace(even, **{field: {rows: 3 * ms for rows, ms in even.short_ms.items()}})
    assert uneven.step_ms()[8] == pytest.approx(2 * even.short_ms[8])


def test_a_target_whose_rows_depend_on_each_other_is_decoded_plainly(pair_costs):
    cheap = pair_costs(5.0, 0.2)
    refused = choose_budget(replace(cheap, target=replace(cheap.target, row_invariant=False)))
    assert not refused.drafting
    assert "could change its text" in refused.reason
