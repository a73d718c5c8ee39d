"""Whether a run has a drafter, by what is stored and by what is measured, and why not."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.engine.engine import Engine
from as2d_cli.engine.measure import ROWS
from as2d_cli.profile import choice, store
from as2d_cli.profile import measure_pair as measure_pair_module
from as2d_cli.profile.choice import DraftChoice


@pytest.mark.usefixtures("undisturbed")
def test_measuring_a_pair_keeps_its_profile_and_drops_a_drafter_that_does_not_pay(settings, monkeypatch):
    slow = settings({"encode_ms": 5.0, "step_ms": 1.0}, {"start_delay_ms": 60.0, "delay_ms": 8.0})
    with Engine(slow) as engine:
        plan = DraftChoice(slow).by_measurement(engine)
        assert not plan.drafting
        assert not engine.is_drafting
    stored = store.load(store.profile_key(slow.target, slow.drafter))
    (costs,) = stored.costs
    assert set(costs.target.short_ms) == set(ROWS)
    assert costs.target.encode_ms >= 5.0
    assert costs.target.row_invariant
    assert costs.target.row_epsilon is None  # the scripted target tells no logits
    assert costs.target.peak_bytes > 10_000_000
    monkeypatch.setattr(choice, "fixed_work_ms", lambda: stored.fixed_work_ms)
    chosen, same = DraftChoice(slow).by_profiles()
    assert chosen.drafter is None
    assert same == plan


@pytest.mark.usefixtures("undisturbed")
def test_a_drafter_that_dies_while_measured_costs_only_speed(settings):
    notes = []
    dying = settings({"encode_ms": 5.0}, {"exit_at": 3})
    with Engine(dying) as engine:
        plan = DraftChoice(dying, note=notes.append).by_first_measurement(engine)
        assert not plan.drafting
        assert not engine.is_drafting
    assert any("ended with code 70 while measured" in note for note in notes)


@pytest.mark.usefixtures("undisturbed")
def test_a_drafter_that_hangs_while_measured_is_given_up_soon(settings, monkeypatch):
    assert measure_pair_module._LEAST_PATIENCE_S <= 60  # a run must not wait longer
    monkeypatch.setattr(measure_pair_module, "_LEAST_PATIENCE_S", 1.0)
    monkeypatch.setattr(measure_pair_module, "_PATIENCE", 0.0)
    notes = []
    hanging = settings({"encode_ms": 5.0}, {"delay_ms": 1e7})
    with Engine(hanging) as engine:
        assert not DraftChoice(hanging, note=notes.append).by_first_measurement(engine).drafting
        assert not engine.is_drafting
    assert any("did not answer for 1 s while measured" in note for note in notes)


@pytest.mark.usefixtures("undisturbed")
def test_a_cache_that_cannot_be_written_does_not_end_the_run(settings, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "file"))
    notes = []
    pair = settings({"encode_ms": 5.0}, {})
    with Engine(pair) as engine:
        assert not DraftChoice(pair, note=notes.append).by_first_measurement(engine).drafting
    assert any("the profile is not kept" in note for note in notes)


def test_a_busy_machine_is_not_measured(settings, monkeypatch):
    monkeypatch.setattr(choice, "is_quiet", lambda: False)
    notes = []
    pair = settings({}, {})
    with Engine(pair) as engine:
        plan = DraftChoice(pair, note=notes.append).by_first_measurement(engine)
        assert "too busy" in plan.reason
        assert notes == [f"{plan.reason}; going on without drafts"]
        assert not engine.is_drafting


def test_what_was_measured_beside_other_programs_is_not_kept(settings, monkeypatch, busy_processors):
    monkeypatch.setattr(choice, "is_quiet", lambda: True)  # they begin later
    notes = []
    pair = settings({"encode_ms": 20.0, "step_ms": 2.0}, {})
    with Engine(pair) as engine, busy_processors:
        assert not DraftChoice(pair, note=notes.append).by_first_measurement(engine).drafting
        assert not engine.is_drafting
    assert re.search(r"other programs used \d+\.\d of \d+ processors .* nothing was stored", notes[-1])
    assert DraftChoice(pair).by_profiles() == (pair, None), "the next run measures"


def test_without_a_profile_nothing_is_chosen(settings):
    pair = settings({}, {})
    assert DraftChoice(pair).by_profiles() == (pair, None)


def test_a_device_that_has_become_slower_is_told_and_predicted_so(settings, monkeypatch, pair_costs):
    pair = settings({}, {})
    key = store.profile_key(pair.target, pair.drafter)
    store.store(key, (pair_costs(5.0, 0.2, decode_threads=1),))
    then = store.load(key).fixed_work_ms
    monkeypatch.setattr(choice, "fixed_work_ms", lambda: then)
    _, before = DraftChoice(pair).by_profiles()
    monkeypatch.setattr(choice, "fixed_work_ms", lambda: 2 * then)
    notes = []
    _, now = DraftChoice(pair, note=notes.append).by_profiles()
    assert now.plain_s == pytest.approx(2 * before.plain_s)
    assert "2.00 times as long" in notes[0]


def test_a_little_drift_changes_nothing(settings, monkeypatch, pair_costs):
    pair = settings({}, {})
    key = store.profile_key(pair.target, pair.drafter)
    store.store(key, (pair_costs(5.0, 0.2, decode_threads=1),))
    then = store.load(key).fixed_work_ms
    found = []
    for factor in (1.0, 1.25, 0.8):
        monkeypatch.setattr(choice, "fixed_work_ms", lambda factor=factor: factor * then)
        found.append(DraftChoice(pair).by_profiles())
    assert found[0] == found[1] == found[2]


def test_of_several_drafters_with_a_profile_the_best_one_runs(settings, pair_costs):
    pair = settings({}, {})
    other = replace(pair.drafter, path=Path("c3d4"), entry=replace(pair.drafter.entry, name="quick"))
    store.store(store.profile_key(pair.target, pair.drafter), (pair_costs(900.0, 9.0, decode_threads=1),))
    assert DraftChoice(pair, [other]).by_profiles()[0].drafter is None
    store.store(store.profile_key(pair.target, other), (pair_costs(5.0, 0.2, decode_threads=1),))
    chosen, plan = DraftChoice(pair, [other]).by_profiles()
    assert chosen.drafter == other
    assert plan.drafter == "quick"
    assert chosen.decode.cap == plan.cap


def test_a_memory_limit_leaves_out_a_drafter_that_would_pay(settings, pair_costs):
    pair = settings({}, {})
    store.store(store.profile_key(pair.target, pair.drafter), (pair_costs(5.0, 0.2, decode_threads=1),))
    chosen, plan = DraftChoice(pair, memory_limit_bytes=600_000_000).by_profiles()
    assert chosen.drafter is None
    assert "hearer is left out: both models need 700 MB, the limit leaves them" in plan.reason
    roomy, _ = DraftChoice(pair, memory_limit_bytes=4_000_000_000).by_profiles()
    assert roomy.drafter is not None


@pytest.mark.parametrize("limit", [None, 4_000_000_000])
def test_a_drafter_that_the_free_memory_has_no_room_for_is_left_out(settings, pair_costs, limit):
    pair = settings({}, {})
    store.store(store.profile_key(pair.target, pair.drafter), (pair_costs(5.0, 0.2, decode_threads=1),))
    choice = DraftChoice(pair, memory_limit_bytes=limit, free_bytes=500_000_000)
    chosen, plan = choice.by_profiles()
    assert chosen.drafter is None
    assert plan.reason == "hearer is left out: both models need 700 MB, this device leaves them 500 MB"
