"""Whether drafts pay follows from measured costs, by replaying windows on them."""

from dataclasses import replace

import pytest

from as2d_cli.domain.types import DecodeStats
from as2d_cli.profile import plan as module
from as2d_cli.profile.plan import CAPS, DraftPlan, PlainCosts, best_of, forecast, within
from as2d_cli.profile.seen import Seen


def plan_drafts(splits, drafter=None, seen=None, **work):
    return module.plan_drafts(forecast(splits, seen), drafter, **({"windows": 20} | work))


def test_a_drafter_that_costs_nothing_is_used(pair_costs):
    plan = plan_drafts([pair_costs(5.0, 0.2)])
    assert plan.drafting
    assert plan.cap in CAPS
    assert plan.drafted_s < plan.plain_s


def test_a_drafter_on_cores_that_are_all_busy_is_not(pair_costs):
    plan = plan_drafts([pair_costs(500.0, 3.0, stretch=2.0)])
    assert not plan.drafting
    assert plan.cap == 0
    assert "would cost" in plan.reason


def test_a_gain_that_is_too_small_is_told_as_such(pair_costs):
    plan = plan_drafts([pair_costs(710.0, 1.0)])
    assert not plan.drafting
    assert plan.reason == "drafts would save less than 5% of the time in one window in 10 here"


def test_a_drafter_slower_than_the_target_is_not_used_even_with_cores_to_spare(pair_costs):
    assert not plan_drafts([pair_costs(900.0, 12.0)]).drafting


def test_the_more_the_models_slow_each_other_the_longer_the_prediction(pair_costs):
    predicted = [plan_drafts([pair_costs(200.0, 1.5, stretch)]).drafted_s for stretch in (1.0, 1.3, 1.8)]
    assert predicted == sorted(predicted)
    assert predicted[0] < predicted[2]


def test_plain_decoding_is_predicted_from_single_rows(pair_costs):
    dense = 171  # tokens of the densest window, its end included
    costs = pair_costs(5.0, 0.2)
    plan = plan_drafts([costs])
    one_row = costs.target.short_ms[1]
    assert plan.plain_s <= (600 + dense * one_row) / 1e3
    assert plan.plain_s >= (600 + 100 * one_row) / 1e3


def test_a_pair_that_does_not_fit_the_memory_is_not_used(pair_costs):
    cheap = pair_costs(5.0, 0.2)
    plan = plan_drafts([cheap])
    assert plan.drafting
    assert within(plan, cheap, 800_000_000, "it") == within(plan, cheap, None, "it") == plan
    refused = within(plan, cheap, 600_000_000, "it")
    assert (refused.drafting, refused.cap, refused.plain_s) == (False, 0, plan.plain_s)
    assert refused.reason == "both models need 700 MB, it leaves them 600 MB"
    assert within(refused, cheap, 1, "another") == refused, "the first limit is told"


@pytest.mark.parametrize("field", ["short_ms", "long_ms"])
def test_a_step_costs_the_mean_of_few_and_many_cached_tokens(pair_costs, field):
    even = pair_costs(5.0, 0.2).target
    uneven = replace(even, **{field: {rows: 3 * ms for rows, ms in even.short_ms.items()}})
    assert uneven.step_ms()[8] == pytest.approx(2 * even.short_ms[8])


def test_a_target_whose_rows_depend_on_each_other_is_decoded_plainly(pair_costs):
    cheap = pair_costs(5.0, 0.2)
    refused = plan_drafts([replace(cheap, target=replace(cheap.target, row_invariant=False))])
    assert not refused.drafting
    assert "could change its text" in refused.reason


def test_passes_go_on_fewer_threads_where_that_leaves_the_drafter_its_core(pair_costs):
    crowded, shared = pair_costs(100.0, 2.0, stretch=2.0), pair_costs(100.0, 2.0, decode_threads=1)
    plan = plan_drafts([crowded, shared], "hearer")
    assert (plan.drafting, plan.drafter, plan.decode_threads) == (True, "hearer", 1)
    alone = plan_drafts([shared], "hearer")
    assert (plan.cap, plan.drafted_s) == (alone.cap, alone.drafted_s)


def test_all_threads_stay_where_fewer_gain_nothing(pair_costs):
    best = pair_costs(5.0, 0.2)
    assert plan_drafts([best, best.scaled(1.2)]).decode_threads is None


def test_plain_decoding_is_predicted_with_all_threads_whatever_drafts_would_have(pair_costs):
    best = pair_costs(5.0, 0.2)
    assert plan_drafts([best, best.scaled(0.5)]).plain_s == plan_drafts([best]).plain_s
    assert plan_drafts([best]).plain == PlainCosts(600.0, best.target.short_ms[1])


@pytest.mark.parametrize(("encode_s", "plain_s"), [(0.9, 1.1), (0.2, 0.7)])
def test_a_window_takes_its_encoder_and_a_pass_per_token(encode_s, plain_s):
    """Encoding beside a drafter takes longer than plainly, encoding less than a whole window shorter."""
    found = DecodeStats(tokens=100, encode_s=encode_s)
    assert PlainCosts(600.0, 5.0).window_s(found) == pytest.approx(plain_s)


def test_a_device_that_is_slower_all_over_chooses_as_before(pair_costs):
    now, before = (forecast([pair_costs(100.0, 1.0).scaled(factor)]) for factor in (1.5, 1.0))
    slow, scaled = (module.plan_drafts(made, windows=20) for made in (now, before.scaled(1.5)))
    assert slow.drafting
    assert (slow.cap, slow.saving) == (scaled.cap, pytest.approx(scaled.saving))
    assert (slow.drafted_s, slow.plain_s) == (pytest.approx(scaled.drafted_s), pytest.approx(scaled.plain_s))
    assert slow.plain.token_ms == pytest.approx(scaled.plain.token_ms)


def test_the_drafter_with_the_least_quantile_is_chosen_and_of_none_the_first():
    plans = [DraftPlan(True, "", drafter=name, worst=worst) for name, worst in (("a", 0.9), ("b", 0.7))]
    assert best_of([DraftPlan(False, "no", worst=0.1), *plans]).drafter == "b"
    assert best_of([DraftPlan(False, "one"), DraftPlan(False, "two")]).reason == "one"


GOOD = Seen((400.0,) * 7 + (380.0,) * 7)
POOR = Seen((400.0,) * 7 + (4.0,) * 7)


def test_random_words_at_a_millisecond_lose_against_a_good_drafter_at_four_once_they_were_seen(pair_costs):
    quick, good = pair_costs(100.0, 1.0), pair_costs(100.0, 4.0)
    assert best_of([plan_drafts([quick], "quick"), plan_drafts([good], "good")]).drafter == "quick"
    known = [plan_drafts([quick], "quick", POOR), plan_drafts([good], "good", GOOD)]
    assert best_of(known).drafter == "good"
    assert not known[0].drafting


def test_what_is_not_known_of_a_drafter_counts_against_it(pair_costs):
    """A few tokens that were nearly all right promise less than many."""
    few = Seen((4.0,) * 7 + (3.8,) * 7)
    worst = [plan_drafts([pair_costs(200.0, 1.0)], seen=seen).worst for seen in (GOOD, few, None, POOR)]
    assert worst == sorted(worst)
    assert worst[0] < worst[1] < worst[3]


def test_long_texts_make_drafts_worth_more(pair_costs):
    short, long = (Seen(GOOD.counts, (length,) * 8) for length in (20, 160))
    worst = [plan_drafts([pair_costs(200.0, 1.0)], seen=seen).worst for seen in (short, long)]
    assert worst[1] < worst[0]


def test_the_first_window_counts_for_all_of_a_short_clip_and_for_little_of_a_long_file(pair_costs):
    """This drafter takes its time for a window, which only the first has to wait for."""
    made = forecast([pair_costs(690.0, 0.3)], GOOD)
    one, some, many = (module.plan_drafts(made, windows=windows, quantile=0.5) for windows in (1, 2, 100))
    assert many.worst < some.worst < one.worst
    assert many.saving > some.saving > one.saving


def test_a_lower_quantile_takes_more_risk(pair_costs):
    made = forecast([pair_costs(200.0, 1.0)])
    worst = [module.plan_drafts(made, windows=20, quantile=quantile).worst for quantile in (0.5, 0.9, 0.99)]
    assert worst == sorted(worst)
    assert worst[0] < worst[2]
