"""Recorded windows decoded natively by models that are all shape."""

import json

import numpy as np
import pytest

from as2d_cli.bench.acceptance import recorded_acceptance
from as2d_cli.bench.projection import NativeLap, Projected
from as2d_cli.bench.report.shape_report import native_report
from as2d_cli.bench.run import native, recital
from as2d_cli.bench.run.recital import reciting
from as2d_cli.cli.commands.bench_shape import bench_shape
from as2d_cli.decoding.protocols import END
from as2d_cli.domain.errors import ModelError
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models import weights
from as2d_cli.models.registry import load_registry
from as2d_cli.profile import trust
from as2d_whisper.shape import random_checkpoint

DIMENSIONS = "width = 64, encoder_layers = 1, decoder_layers = 1, n_mels = 80, vocab = 51865"
REGISTRY = f"""
schema = 1
default_pair = "tiny-shape"
pairs.tiny-shape = {{ target = "tiny-shape", drafter = "tinier-shape" }}
[models.tiny-shape]
plugin = "whisper"
role = "any"
shape_of = "tiny"
source = {{ kind = "none" }}
options = {{ kind = "shape", {DIMENSIONS} }}
[models.tinier-shape]
plugin = "whisper"
role = "drafter"
shape_of = "tinier"
source = {{ kind = "none" }}
options = {{ kind = "shape", {DIMENSIONS.replace("64", "128")} }}
"""


@pytest.fixture
def registry(tmp_path, monkeypatch):
    (tmp_path / "models.toml").write_text(REGISTRY)
    monkeypatch.setenv("AS2D_MODELS", str(tmp_path / "models.toml"))
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(trust, "load_flaw", lambda load: None)
    monkeypatch.setattr(native, "_LAP_S", 0.0)
    return load_registry()


def test_a_whisper_of_random_weights_recites_recorded_windows_both_ways(registry, tmp_path, capsys):
    bench_shape("tiny", [], 1, tmp_path / "kept.jsonl", native=True)
    told = capsys.readouterr()
    assert "natively, 1 windows, 5 laps in turn: target-only on all threads" in told.out
    assert "lap 5 of 5" in told.err
    assert "going on without" not in told.err
    laps = json.loads((tmp_path / "kept.jsonl").read_text())["native"]
    assert len(laps) == 5
    assert all(lap["windows"] == 1 and lap["plain_s"] > 0 and lap["drafted_s"] > 0 for lap in laps)


@pytest.fixture
def reciters(registry):
    entries = [registry.model(name) for name in ("tiny-shape", "tinier-shape")]
    return [ModelRef(reciting(entry), weights.ensure(entry), 1) for entry in entries]


def test_text_and_drafts_of_random_weights_are_the_recorded_ones(reciters):
    """Otherwise native laps would measure drafts that are never accepted."""
    acceptance = recorded_acceptance()
    with Engine(EngineSettings(reciters[0], None)) as plain, Engine(EngineSettings(*reciters)) as pair:
        alone, drafted = (native.decode_windows(engine, acceptance, 2) for engine in (plain, pair))
    for window, one, other in zip(acceptance.windows[:2], alone, drafted, strict=True):
        assert one.tokens == other.tokens == window.tokens
        assert one.stats.steps == len(window.tokens)
        assert other.stats.accepted > 0


def test_a_draft_of_random_weights_is_the_recorded_one(reciters):
    drafter = recital.as2d_load_drafter(reciters[1].entry, reciters[1].path, 1)
    features = np.zeros(drafter.spec.features.shape, np.float32)
    acceptance = recorded_acceptance()
    *text, end = [token.id for token in drafter.draft(features, recital.request_of(1))]
    assert (*text, acceptance.end_id) == acceptance.windows[1].draft
    assert end == END


def test_native_laps_are_reported_by_medians_with_their_range():
    way = Projected(2, 7, 1.0, 1.2, 2.0, 0, 4.0)
    laps = [NativeLap(4, 8.0, 4.0), NativeLap(4, 8.0, 8.0), NativeLap(4, 10.0, 5.0)]
    (line,) = native_report(way, laps)
    assert "target-only on all threads 2.00 s/window, as2d-7, target on 2 1.25 s/window: 2.00x" in line
    assert "(laps 1.00x to 2.00x)" in line


@pytest.mark.parametrize("wrong", [{"width": 100}, {"vocab": 0}, {"n_mels": "80"}, {"encoder_layers": None}])
def test_impossible_dimensions_of_a_shape_are_named(wrong):
    options = {"width": 64, "encoder_layers": 1, "decoder_layers": 1, "n_mels": 80, "vocab": 300, **wrong}
    with pytest.raises(ModelError, match=f"option {next(iter(wrong))}"):
        random_checkpoint(options)
