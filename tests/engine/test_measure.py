"""How long a target is measured, and which of its windows and passes count."""

from types import SimpleNamespace

import pytest

from as2d_cli.domain.types import FeatureSpec
from as2d_cli.engine import measure
from as2d_cli.engine.measure import LONG_TOKENS, ROWS, SHORT_TOKENS, measure_target
from as2d_cli.testing import ScriptedSession


class Clock:
    """Time that passes only while the target works."""

    def __init__(self):
        self.now_s = 0.0

    def perf_counter(self):
        return self.now_s


class Target:
    """A target whose windows take so many seconds to open, and whose passes take 1 ms a row."""

    def __init__(self, clock, *encode_s):
        self.spec = SimpleNamespace(features=FeatureSpec(), languages=("en",))
        self._clock, self._encode_s = clock, list(encode_s)
        self.windows = 0
        self.passes = []
        """Rows of each pass."""

    def open(self, features, request):
        self.windows += 1
        self._clock.now_s += self._encode_s.pop(0)
        return ScriptedSession([1] * 300, prompt=(3,), vocab_size=50, max_tokens=300, cost=self._passed)

    def _passed(self, rows):
        self.passes.append(rows)
        self._clock.now_s += 1e-3 * rows


@pytest.fixture
def clock(monkeypatch):
    virtual = Clock()
    monkeypatch.setattr(measure, "time", virtual)
    return virtual


def test_the_first_window_of_a_cold_target_only_warms_it_up(clock):
    target = Target(clock, 2.0, 0.5)
    costs = measure_target(target, seconds=0.0)
    assert target.windows == 2
    assert costs.encode_ms == pytest.approx(500)
    assert costs.row_invariant


def test_the_first_window_of_a_warm_target_counts_and_is_used(clock):
    target = Target(clock, 0.5)
    costs = measure_target(target, seconds=0.0, warm=True)
    assert target.windows == 1
    assert costs.encode_ms == pytest.approx(500)
    assert costs.row_epsilon is None


def test_a_slow_target_encodes_once_and_runs_each_pass_once(clock):
    target = Target(clock, 4.0)
    costs = measure_target(target, seconds=0.0, rounds=1, warm=True)
    assert target.windows == 1
    assert costs.encode_ms == pytest.approx(4000)
    assert target.passes.count(5) == 2, "with few and with many tokens cached"


def test_every_row_count_is_timed_with_few_and_with_many_tokens_cached(clock):
    costs = measure_target(Target(clock, 0.1, 0.1), seconds=0.0)
    assert list(costs.short_ms) == list(costs.long_ms) == list(ROWS)
    assert costs.step_ms() == pytest.approx({rows: float(rows) for rows in ROWS})


def test_a_target_is_measured_until_the_time_is_over(clock):
    target = Target(clock, *[0.5] * 20)
    measure_target(target, seconds=4.0, warm=True)
    assert target.windows > 2
    assert 4.0 < clock.now_s - 0.5 < 5.5


def test_a_target_that_is_far_over_the_time_is_not_measured_again_for_a_missing_round(clock):
    target = Target(clock, 1.0, 4.0, 1.0)
    measure_target(target, seconds=0.0, rounds=100)
    assert target.windows == 2


def test_every_pass_is_timed_as_often_as_asked(clock):
    target = Target(clock, *[0.01] * 20)
    measure_target(target, seconds=0.0, rounds=4, warm=True)
    assert target.passes.count(5) >= 2 * 4


@pytest.mark.parametrize("tokens", [SHORT_TOKENS, LONG_TOKENS])
def test_a_cache_is_filled_to_a_length_and_not_beyond(tokens):
    session = ScriptedSession([1] * 300, prompt=(3, 4), vocab_size=50, max_tokens=300)
    assert measure._fill_cache(session, tokens) == session.length == 1 + tokens


@pytest.mark.parametrize(("slowed", "spread"), [(0, 1.0), (20, 1.0), (2, 2.0)])
def test_uneven_repeats_of_most_passes_are_told(clock, slowed, spread):
    target = Target(clock, *[0.01] * 20)
    measured = target._passed

    def uneven(rows):
        measured(rows)
        if slowed and len(target.passes) % slowed == 0:
            clock.now_s += 0.05

    target._passed = uneven
    costs = measure_target(target, seconds=0.0, rounds=4, warm=True)
    assert costs.spread > spread if spread > 1 else costs.spread < 1.25
