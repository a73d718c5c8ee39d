"""Measuring a pair through the same protocols that decoding uses, alone and both at once."""

from pathlib import Path

import pytest

from as2d_cli import profile
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


def test_without_a_profile_nothing_is_chosen():
    pair = settings({}, {})
    assert apply_stored(pair) == (pair, None)
