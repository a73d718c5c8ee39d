"""Measuring a pair through the same protocols that decoding uses, alone and both at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.domain.errors import ModelError
from as2d_cli.engine import measure_pair
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.measure import ROWS
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource
from as2d_cli.profile import selection, store
from as2d_cli.profile.selection import Selection


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path))


def settings(target=None, drafter=None):
    def model(name, options):
        entry = ModelEntry(name, "scripted", "any", NoSource(), options={"seed": 1, "words": 40} | options)
        return ModelRef(entry, Path("a1b2"), 1)

    return EngineSettings(
        model("speaker", target or {}), None if drafter is None else model("hearer", drafter)
    )


def test_an_engine_without_a_drafter_cannot_be_measured():
    with Engine(settings()) as engine, pytest.raises(ModelError, match="no drafter to measure"):
        engine.measure()


def test_measuring_a_pair_keeps_its_profile_and_drops_a_drafter_that_does_not_pay(monkeypatch):
    slow = settings({"encode_ms": 5.0, "step_ms": 1.0}, {"start_delay_ms": 60.0, "delay_ms": 8.0})
    with Engine(slow) as engine:
        budget = Selection(slow).measured(engine)
        assert not budget.drafting
        assert not engine.is_drafting
    stored = store.load(store.profile_key(slow.target, slow.drafter))
    (costs,) = stored.costs
    assert set(costs.target.short_ms) == set(ROWS)
    assert costs.target.encode_ms >= 5.0
    assert costs.target.row_invariant
    assert costs.target.row_epsilon is None  # the scripted target tells no logits
    assert costs.target.peak_bytes > 10_000_000
    monkeypatch.setattr(selection, "fixed_work_ms", lambda: stored.fixed_work_ms)
    chosen, same = Selection(slow).stored()
    assert chosen.drafter is None
    assert same == budget


def test_a_drafter_that_dies_while_measured_costs_only_speed(monkeypatch):
    monkeypatch.setattr(selection, "is_quiet", lambda **_: True)
    notes = []
    dying = settings({"encode_ms": 5.0}, {"exit_at": 3})
    with Engine(dying) as engine:
        budget = Selection(dying, note=notes.append).first(engine)
        assert not budget.drafting
        assert not engine.is_drafting
    assert any("ended with code 70 while measured" in note for note in notes)


def test_a_drafter_that_fails_while_measured_says_why():
    with (
        Engine(settings({"encode_ms": 5.0}, {"fail_at": 3})) as engine,
        pytest.raises(ModelError, match="fails before token 3"),
    ):
        engine.measure()


def test_a_drafter_that_hangs_while_measured_is_given_up_soon(monkeypatch):
    assert measure_pair._LEAST_PATIENCE_S <= 60  # a run must not wait longer
    monkeypatch.setattr(measure_pair, "_LEAST_PATIENCE_S", 1.0)
    monkeypatch.setattr(measure_pair, "_PATIENCE", 0.0)
    monkeypatch.setattr(selection, "is_quiet", lambda **_: True)
    notes = []
    hanging = settings({"encode_ms": 5.0}, {"delay_ms": 1e7})
    with Engine(hanging) as engine:
        assert not Selection(hanging, note=notes.append).first(engine).drafting
        assert not engine.is_drafting
    assert any("did not answer for 1 s while measured" in note for note in notes)


def test_a_slow_drafter_of_a_slow_target_is_waited_for(monkeypatch):
    monkeypatch.setattr(measure_pair, "_LEAST_PATIENCE_S", 0.1)
    with Engine(settings({"encode_ms": 300.0}, {"start_delay_ms": 200.0})) as engine:
        assert engine.measure()[0].drafter.encode_ms >= 200


def test_a_target_that_dies_while_measured_is_back_for_the_first_window():
    with Engine(settings({"exit_at": 60}, {})) as engine:
        before = engine.process_ids[0]
        with pytest.raises(ModelError, match="ended with code 70 while measured"):
            engine.measure()
        assert engine.process_ids[0] != before


def test_a_cache_that_cannot_be_written_does_not_end_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(selection, "is_quiet", lambda **_: True)
    (tmp_path / "file").touch()
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "file"))
    notes = []
    pair = settings({"encode_ms": 5.0}, {})
    with Engine(pair) as engine:
        assert not Selection(pair, note=notes.append).first(engine).drafting
    assert any("the profile is not kept" in note for note in notes)


def test_a_busy_machine_is_not_measured(monkeypatch):
    monkeypatch.setattr(selection, "is_quiet", lambda **_: False)
    pair = settings({}, {})
    with Engine(pair) as engine:
        budget = Selection(pair).first(engine)
        assert "too busy" in budget.reason
        assert not engine.is_drafting


def test_what_was_measured_while_the_machine_became_busy_is_not_kept(monkeypatch):
    monkeypatch.setattr(selection, "is_quiet", lambda *, after_work=False: not after_work)
    notes = []
    pair = settings({"encode_ms": 5.0}, {})
    with Engine(pair) as engine:
        assert not Selection(pair, note=notes.append).first(engine).drafting
        assert not engine.is_drafting
    assert "the machine became busy meanwhile" in notes[-1]
    assert Selection(pair).stored() == (pair, None), "the next run measures"


def test_without_a_profile_nothing_is_chosen():
    pair = settings({}, {})
    assert Selection(pair).stored() == (pair, None)


def test_a_pair_with_threads_to_spare_is_measured_both_ways_and_left_as_chosen():
    pair = settings({"encode_ms": 5.0, "step_ms": 1.0}, {})
    pair = replace(pair, target=replace(pair.target, threads=3))
    with Engine(pair) as engine:
        before = engine.process_ids
        costs = engine.measure()
        assert [own.decode_threads for own in costs] == [3, 2]
        assert costs[0].target.encode_ms == costs[1].target.encode_ms
        assert engine.process_ids[0] != before[0]
        assert engine.process_ids[1] == before[1]


def test_a_device_that_has_become_slower_is_told_and_predicted_so(monkeypatch, pair_costs):
    pair = settings({}, {})
    key = store.profile_key(pair.target, pair.drafter)
    store.store(key, (pair_costs(5.0, 0.2, decode_threads=1),))
    then = store.load(key).fixed_work_ms
    monkeypatch.setattr(selection, "fixed_work_ms", lambda: then)
    _, before = Selection(pair).stored()
    monkeypatch.setattr(selection, "fixed_work_ms", lambda: 2 * then)
    notes = []
    _, now = Selection(pair, note=notes.append).stored()
    assert now.plain_s == pytest.approx(2 * before.plain_s)
    assert "2.00 times as long" in notes[0]


def test_a_little_drift_changes_nothing(monkeypatch, pair_costs):
    pair = settings({}, {})
    key = store.profile_key(pair.target, pair.drafter)
    store.store(key, (pair_costs(5.0, 0.2, decode_threads=1),))
    then = store.load(key).fixed_work_ms
    found = []
    for factor in (1.0, 1.25, 0.8):
        monkeypatch.setattr(selection, "fixed_work_ms", lambda factor=factor: factor * then)
        found.append(Selection(pair).stored())
    assert found[0] == found[1] == found[2]


def test_of_several_drafters_with_a_profile_the_best_one_runs(pair_costs):
    pair = settings({}, {})
    other = replace(pair.drafter, path=Path("c3d4"), entry=replace(pair.drafter.entry, name="quick"))
    store.store(store.profile_key(pair.target, pair.drafter), (pair_costs(900.0, 9.0, decode_threads=1),))
    assert Selection(pair, [other]).stored()[0].drafter is None
    store.store(store.profile_key(pair.target, other), (pair_costs(5.0, 0.2, decode_threads=1),))
    chosen, budget = Selection(pair, [other]).stored()
    assert chosen.drafter == other
    assert budget.drafter == "quick"
    assert chosen.decode.cap == budget.cap


def test_a_memory_limit_leaves_out_a_drafter_that_would_pay(pair_costs):
    pair = settings({}, {})
    store.store(store.profile_key(pair.target, pair.drafter), (pair_costs(5.0, 0.2, decode_threads=1),))
    chosen, budget = Selection(pair, memory_limit_bytes=600_000_000).stored()
    assert chosen.drafter is None
    assert "both models need 700 MB, the limit leaves them" in budget.reason
    roomy, _ = Selection(pair, memory_limit_bytes=4_000_000_000).stored()
    assert roomy.drafter is not None
