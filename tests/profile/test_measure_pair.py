"""Measuring a pair through the same protocols that decoding uses, alone and both at once."""

from dataclasses import replace

import numpy as np
import pytest

from as2d_cli.domain.errors import MeasurementError, ModelError
from as2d_cli.domain.types import Request, Window
from as2d_cli.engine.engine import Engine
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.profile import measure_pair as measure_pair_module
from as2d_cli.profile import trust
from as2d_cli.profile.measure_pair import measure_pair


def ignore(flaw):
    """Go on although this machine may be busy."""


def test_an_engine_without_a_drafter_cannot_be_measured(settings):
    with Engine(settings()) as engine, pytest.raises(ModelError, match="no drafter to measure"):
        measure_pair(engine)


def test_a_drafter_that_fails_while_measured_says_why(settings):
    with (
        Engine(settings({"encode_ms": 5.0}, {"fail_at": 3})) as engine,
        pytest.raises(ModelError, match="fails before token 3"),
    ):
        measure_pair(engine, ignore)


def test_a_slow_drafter_of_a_slow_target_is_waited_for(settings, monkeypatch):
    monkeypatch.setattr(measure_pair_module, "_LEAST_PATIENCE_S", 0.1)
    with Engine(settings({"encode_ms": 300.0}, {"start_delay_ms": 200.0})) as engine:
        assert measure_pair(engine, ignore)[0].drafter.encode_ms >= 200


def test_a_target_that_dies_while_measured_is_back_for_the_first_window(settings):
    with Engine(settings({"exit_at": 60}, {})) as engine:
        before = engine.process_ids[0]
        with pytest.raises(ModelError, match="ended with code 70 while measured"):
            measure_pair(engine, ignore)
        assert engine.process_ids[0] != before


def test_a_pair_with_threads_to_spare_is_measured_both_ways_and_left_as_chosen(settings):
    pair = settings({"encode_ms": 5.0, "step_ms": 1.0}, {})
    pair = replace(pair, target=replace(pair.target, threads=3))
    with Engine(pair) as engine:
        before = engine.process_ids
        costs = measure_pair(engine, ignore)
        assert [own.decode_threads for own in costs] == [3, 2]
        assert costs[0].target.encode_ms == costs[1].target.encode_ms
        assert engine.process_ids[0] != before[0]
        assert engine.process_ids[1] == before[1]


def test_a_pair_that_reads_can_be_measured(settings):
    reads = settings({"step_ms": 1.0, "listens": False}, {"listens": False})
    with Engine(reads) as engine:
        (costs,) = measure_pair(engine, ignore)
    assert costs.target.row_invariant
    assert costs.target.step_ms()[1] >= 1.0


def test_a_target_that_fails_when_it_is_measured_fails_no_window(settings):
    with Engine(settings({"fail_at": 150}, {})) as engine:
        with pytest.raises(ModelError, match="failed while it was measured"):
            measure_pair(engine, ignore)
        silence = Window(0, 0, np.zeros(16000, np.float32))
        (outcome,) = engine.run([WindowTask(0, silence, Request())])
    assert outcome.result is not None


def judge_in_turn(monkeypatch, *flaws):
    """Have the stages of a measurement judged so, one after the other, and then without a flaw."""
    left = list(flaws)
    monkeypatch.setattr(trust, "load_flaw", lambda load: left.pop(0) if left else None)


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(
    ("flaws", "told"),
    [
        (["noise"], []),
        ([None, "noise", None, "noise"], []),
        (["noise", "more noise", "even more"], ["more noise", "even more"]),
        ([None, None, "noise", "noise"], ["noise"]),
    ],
)
def test_a_disturbed_stage_is_measured_once_more(settings, monkeypatch, flaws, told):
    judge_in_turn(monkeypatch, *flaws)
    found = []
    with Engine(settings({"encode_ms": 5.0, "step_ms": 1.0}, {})) as engine:
        measure_pair(engine, found.append)
    assert found == told


@pytest.mark.usefixtures("undisturbed")
def test_what_stays_disturbed_ends_the_measurement_at_once(settings, monkeypatch):
    stages = []
    monkeypatch.setattr(trust, "load_flaw", lambda load: stages.append(load) or "noise")
    with Engine(settings({"encode_ms": 5.0, "step_ms": 1.0}, {})) as engine:
        with pytest.raises(MeasurementError, match="noise: nothing was stored"):
            measure_pair(engine)
        assert engine.is_drafting
    assert len(stages) == 2


@pytest.mark.usefixtures("undisturbed")
def test_a_stage_that_takes_too_long_is_not_measured_again(settings, monkeypatch):
    monkeypatch.setattr(measure_pair_module, "_REPEATS_S", 0.5)
    judge_in_turn(monkeypatch, "noise")
    with (
        Engine(settings({"encode_ms": 5.0, "step_ms": 1.0}, {})) as engine,
        pytest.raises(MeasurementError, match="noise"),
    ):
        measure_pair(engine)


@pytest.mark.usefixtures("undisturbed")
def test_costs_that_cannot_be_are_a_flaw_of_the_whole(settings, monkeypatch):
    monkeypatch.setattr(trust, "costs_flaw", lambda splits: f"{len(splits)} curves that cannot be")
    with (
        Engine(settings({"encode_ms": 5.0, "step_ms": 1.0}, {})) as engine,
        pytest.raises(MeasurementError, match="1 curves that cannot be"),
    ):
        measure_pair(engine)
