"""Measuring a pair through the same protocols that decoding uses, alone and both at once."""

from pathlib import Path

import pytest

from as2d_cli import profile, selection
from as2d_cli.engine import Engine, EngineSettings
from as2d_cli.errors import ModelError
from as2d_cli.measure import ROWS
from as2d_cli.model_sources import NoSource
from as2d_cli.registry import ModelEntry
from as2d_cli.selection import apply_stored, measure_pair
from as2d_cli.workers import ModelRef


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


def test_measuring_a_pair_keeps_its_profile_and_drops_a_drafter_that_does_not_pay():
    slow = settings({"encode_ms": 5.0, "step_ms": 1.0}, {"start_delay_ms": 60.0, "delay_ms": 8.0})
    with Engine(slow) as engine:
        budget = measure_pair(engine, slow)
        assert not budget.drafting
        assert not engine.is_drafting
    stored = profile.load(profile.profile_key(slow.target, slow.drafter))
    assert set(stored.costs.target.short_ms) == set(ROWS)
    assert stored.costs.target.encode_ms >= 5.0
    assert stored.costs.target.row_invariant
    assert stored.costs.target.peak_bytes > 10_000_000
    chosen, same = apply_stored(slow)
    assert chosen.drafter is None
    assert same == budget


def test_a_drafter_that_dies_while_measured_costs_only_speed(monkeypatch):
    monkeypatch.setattr(selection, "is_quiet", lambda: True)
    notes = []
    dying = settings({"encode_ms": 5.0}, {"exit_at": 3})
    with Engine(dying) as engine:
        budget = selection.first_budget(engine, dying, notes.append)
        assert not budget.drafting
        assert not engine.is_drafting
    assert any("ended while it was measured" in note for note in notes)


def test_a_cache_that_cannot_be_written_does_not_end_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(selection, "is_quiet", lambda: True)
    (tmp_path / "file").touch()
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "file"))
    notes = []
    pair = settings({"encode_ms": 5.0}, {})
    with Engine(pair) as engine:
        assert not selection.first_budget(engine, pair, notes.append).drafting
    assert any("the profile is not kept" in note for note in notes)


def test_a_busy_machine_is_not_measured(monkeypatch):
    monkeypatch.setattr(selection, "is_quiet", lambda: False)
    pair = settings({}, {})
    with Engine(pair) as engine:
        budget = selection.first_budget(engine, pair, print)
        assert "too busy" in budget.reason
        assert not engine.is_drafting


def test_without_a_profile_nothing_is_chosen():
    pair = settings({}, {})
    assert apply_stored(pair) == (pair, None)
