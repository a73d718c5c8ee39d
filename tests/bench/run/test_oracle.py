import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from as2d_cli.bench.run.oracle import (
    Choice,
    Recording,
    Setup,
    catalog_times,
    hindsight,
    judge,
    new_controller,
)
from as2d_cli.decoding import StepCosts
from as2d_cli.decoding.replay import RecordedWindow, ReplayCosts, replay
from as2d_cli.domain.errors import DecodeError

END = 0
STAIRS_MS = {1: 5.0, 2: 5.2, 3: 5.5, 5: 8.0, 8: 11.0, 16: 19.0, 24: 27.0}
TIMES = np.array([[100.0, 80.0, 120.0], [100.0, 130.0, 60.0], [50.0, 70.0, 55.0]])


def test_the_oracle_sums_the_best_of_every_window():
    known = hindsight(TIMES)
    assert known.oracle.total_ms == 80 + 60 + 50
    assert known.oracle.speedup == pytest.approx(250 / 190)
    assert (known.oracle.of_oracle, known.oracle.slower) == (1.0, 0.0)


def test_the_best_static_choice_is_the_best_sum():
    known = hindsight(TIMES)
    assert (known.static, known.best_static.total_ms) == (2, 235)
    assert known.best_static.of_oracle == pytest.approx(190 / 235)
    assert known.best_static.slower == pytest.approx(2 / 3)


def test_pooled_ratios_are_ratios_of_sums():
    verdict = judge(np.array([10.0, 200.0, 50.0]), TIMES)
    assert verdict.speedup == pytest.approx(250 / 260)  # the mean of the ratios would be 3.8
    assert verdict.slower == pytest.approx(1 / 3)


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 6)), elements=st.floats(1, 1e5)))
def test_no_choice_beats_the_oracle_and_the_oracle_never_loses_to_target_only(times):
    known = hindsight(times)
    assert known.oracle.slower == 0
    assert known.oracle.total_ms <= times.sum(axis=0).min() * (1 + 1e-12)
    assert known.best_static.speedup >= 1 - 1e-12
    for column in times.T:
        assert judge(column, times).of_oracle <= 1 + 1e-12


@pytest.mark.parametrize("times", [np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(3)])
def test_an_oracle_needs_times(times):
    with pytest.raises(DecodeError, match="shape"):
        hindsight(times)


def test_window_times_must_be_of_the_same_windows():
    with pytest.raises(DecodeError, match="judged"):
        judge(np.array([1.0, 2.0]), TIMES)


def recordings(windows=6):
    """Windows with a target alone, a good and slow drafter, and a bad one; two machines' costs."""
    plain, good, bad = Setup(None, 2), Setup("good", 1, 1), Setup("bad", 1, 1)
    made = {plain: [], good: [], bad: []}
    for index in range(windows):
        draw = random.Random(index)
        tokens = (*(draw.randrange(1, 150) for _ in range(40 + 10 * index)), END)
        shared = {"end_id": END, "vocab_size": 200, "max_tokens": 300, "encode_ms": 50.0}
        made[plain].append(RecordedWindow(tokens, **shared))
        for setup, errors, pace in ((good, 0.05, 1.0 + index), (bad, 0.9, 1.0)):
            draft = tuple(token if draw.random() > errors else 160 for token in tokens)
            times = tuple(pace * (at + 1) for at in range(len(draft)))
            made[setup].append(RecordedWindow(tokens, draft=draft, publish_ms=times, **shared))
    fast = ReplayCosts(StepCosts(STAIRS_MS))
    slow = ReplayCosts(StepCosts(STAIRS_MS, {rows: 1.2 * ms for rows, ms in STAIRS_MS.items()}), 1.3, 1.2)
    return {setup: Recording(made[setup], fast if setup == plain else slow) for setup in made}


CHOICES = (
    Choice(Setup(None, 2)),
    *(Choice(Setup(drafter, 1, 1), cap) for drafter in ("good", "bad") for cap in (2, 15)),
)


def test_catalog_times_are_those_of_replaying_every_window_with_every_choice():
    given = recordings()
    times = catalog_times(CHOICES, given)
    assert times.shape == (6, 5)
    plain = given[CHOICES[0].setup].windows
    assert times[:, 0] == pytest.approx([50 + 5 * len(window.tokens) for window in plain])
    good = given[CHOICES[2].setup]
    first = replay(good.windows[0], good.costs, new_controller(CHOICES[2], good.costs.steps))
    assert (CHOICES[2].cap, times[0, 2]) == (15, first.total_ms)


def test_a_good_drafter_wins_where_it_is_fast_and_the_oracle_takes_the_best_of_both():
    times = catalog_times(CHOICES, recordings())
    known = hindsight(times)
    assert times[0, 2] < 0.7 * times[0, 0]
    assert CHOICES[known.static].setup.drafter == "good"
    assert known.oracle.total_ms <= known.best_static.total_ms


def test_a_missing_recording_is_an_error():
    given = recordings()
    del given[Setup("bad", 1, 1)]
    with pytest.raises(DecodeError, match="bad"):
        catalog_times(CHOICES, given)


def test_recordings_of_other_windows_are_not_compared():
    given = recordings()
    good = given[Setup("good", 1, 1)]
    given[Setup("good", 1, 1)] = Recording(good.windows[1:], good.costs)
    with pytest.raises(DecodeError, match="same windows"):
        catalog_times(CHOICES, given)


def test_a_catalog_without_target_only_first_is_an_error():
    with pytest.raises(DecodeError, match="target-only"):
        catalog_times(CHOICES[1:], recordings())
