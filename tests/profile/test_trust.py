"""Which measurements are refused: beside other work, uneven, or with curves that no machine has."""

from dataclasses import replace

import pytest

from as2d_cli.profile import trust
from as2d_cli.profile.machine_load import Load

QUIET = {1: 4.9, 2: 5.2, 3: 5.1, 5: 5.6, 8: 7.0, 9: 9.8, 12: 10.4, 16: 11.9, 24: 17.1}
DISTURBED = QUIET | {1: 73.0, 5: 69.0, 8: 29.0}
"""Measured while something else ran, on the machine of the quiet curve."""


@pytest.fixture
def costs(pair_costs):
    """The costs of a quiet pair; each model takes half as long again beside the other."""
    return pair_costs(200.0, 2.0, 1.5)


def with_idle(costs, curve):
    return replace(costs, target=replace(costs.target, short_ms=curve, long_ms=curve))


@pytest.mark.parametrize(("others", "flawed"), [(0.0, False), (0.19, False), (0.3, True), (1.3, True)])
def test_others_may_use_a_tenth_of_the_processors(others, flawed):
    flaw = trust.load_flaw(Load(others, present=2, usable=2))
    assert (flaw is not None) is flawed


def test_the_load_of_others_is_told_in_processors():
    flaw = trust.load_flaw(Load(1.3, present=2, usable=2))
    assert flaw == "other programs used 1.3 of 2 processors while it was measured"


def test_a_system_that_tells_nothing_of_others_is_believed():
    assert trust.load_flaw(None) is None


@pytest.mark.parametrize(("spread", "flawed"), [(1.0, False), (1.2, False), (1.4, True)])
def test_repeats_must_agree(costs, spread, flawed):
    assert (trust.target_flaw(replace(costs.target, spread=spread)) is not None) is flawed


def test_quiet_costs_have_no_flaw(costs):
    quiet = with_idle(costs, QUIET)
    assert trust.target_flaw(quiet.target) is None
    assert trust.costs_flaw([quiet, replace(quiet, decode_threads=1)]) is None


def test_fewer_rows_are_not_dearer_than_more(costs):
    disturbed = with_idle(costs, DISTURBED)
    expected = "a pass of 1 row took 73.0 ms, one of 2 rows 5.2 ms"
    assert trust.target_flaw(disturbed.target) == expected
    assert trust.costs_flaw([costs, disturbed]) == expected, "with any split of threads"


def test_a_little_unevenness_of_a_curve_is_no_flaw(costs):
    assert trust.costs_flaw([with_idle(costs, QUIET | {1: 6.5, 9: 12.0})]) is None
    tiny = {rows: 0.05 if rows > 1 else 0.9 for rows in QUIET}
    assert trust.target_flaw(replace(costs.target, short_ms=tiny, long_ms=tiny)) is None, "below the clock"


def test_the_curve_beside_the_drafter_need_not_rise(costs):
    busy = replace(costs.target_busy, short_ms=costs.target_busy.short_ms | {9: 112.0})
    assert trust.costs_flaw([replace(costs, target_busy=busy)]) is None


@pytest.mark.parametrize(
    ("model", "slower", "flaw"),
    [
        ("target", {"encode_ms": 1500.0}, "encoding a window took 1500.0 ms alone and 900.0 ms beside"),
        ("drafter", {"encode_ms": 500.0}, "the drafter's encoding took 500.0 ms alone and 300.0 ms beside"),
        ("drafter", {"token_ms": 9.0}, "a draft token took 9.0 ms alone and 3.0 ms beside"),
    ],
)
def test_nothing_is_cheaper_beside_the_other_model(costs, model, slower, flaw):
    disturbed = replace(costs, **{model: replace(getattr(costs, model), **slower)})
    assert trust.costs_flaw([disturbed]).startswith(flaw)


def test_no_pass_is_cheaper_beside_the_drafter(costs):
    disturbed = replace(costs, target=costs.target.scaled(2.2), drafter=costs.drafter)
    disturbed = replace(disturbed, target=replace(disturbed.target, encode_ms=600.0))
    assert "a pass of 1 row took 10.8 ms alone and 7.4 ms beside" in trust.costs_flaw([disturbed])


@pytest.mark.parametrize(
    ("again_ms", "flawed"), [(700.0, False), (500.0, False), (900.0, True), (400.0, True)]
)
def test_the_same_encoder_takes_the_same_time(costs, again_ms, flawed):
    again = replace(costs.target, encode_ms=again_ms)
    assert (trust.encoder_flaw(costs.target, again) is not None) is flawed
