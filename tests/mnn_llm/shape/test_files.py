"""Random models in given dimensions: made, loaded as target and drafter, measured like any pair."""

import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models import weights
from as2d_cli.models.registry import ModelEntry, load_registry
from as2d_cli.models.sources import NoSource
from as2d_cli.profile.measure_pair import measure_pair
from as2d_mnn_llm.shape import files
from as2d_mnn_llm.shape.files import read_shape, write_shape

TINY = {
    "kind": "shape", "architecture": "qwen3", "layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2,
    "head_dim": 16, "ffn": 128, "vocab": 300, "rope_theta": 1e6, "norm_eps": 1e-6, "tied": True,
    "block": 64, "bits": 4, "text_tokens": 16, "windows": 2, "audio_front_end": "frames", "audio_layers": 2,
    "audio_width": 64, "audio_heads": 4, "audio_ffn": 128, "audio_n_mels": 128, "audio_window": 100,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path))


def model(name="tiny", **options):
    entry = ModelEntry(name, "mnn_llm", "any", NoSource(), options=TINY | options)
    return ModelRef(entry, weights.ensure(entry), 2)


def test_a_shape_is_measured_as_any_pair_is_and_decides_the_same_in_any_rows():
    target, drafter = model(), model("tinier", layers=1, tied=False, architecture="llama")
    with Engine(EngineSettings(target, drafter)) as engine:
        assert engine.target_spec.features.shape == (128, 400)
        assert engine.target_spec.vocab_size == 300
        (costs,) = measure_pair(engine, lambda flaw: None)
    assert costs.target.row_invariant
    assert 0 < costs.target.short_ms[1] < costs.target.encode_ms
    assert costs.drafter.token_ms > 0


def test_the_front_end_of_qwen3_asr_runs_too(tmp_path):
    from as2d_cli.domain.types import Request
    from as2d_mnn_llm.shape.model import ShapeDrafter, ShapeTarget

    options = TINY | {"audio_front_end": "conv2d", "audio_window": 26, "windows": 1}
    write_shape("tiny", options, tmp_path)
    target = ShapeTarget(tmp_path, 1)
    assert target.spec.features.shape == (128, 200)
    features = np.zeros((128, 200), np.float32)
    session = target.open(features, Request())
    assert len(session.prompt) == 16 + 390
    assert session.length == 16 + 390 - 1
    drafted = ShapeDrafter(tmp_path, 1).draft(features, Request())
    assert 0 <= next(drafted).id < 300


def test_the_shapes_of_the_registry_have_the_sizes_of_their_models():
    entries = {name: entry for name, entry in load_registry().models.items() if entry.plugin == "mnn_llm"}
    sizes = {
        name: read_shape(entry.options)
        for name, entry in entries.items()
        if entry.options.get("kind") == "shape"
    }
    billions = {
        name: sum(out * inner for out, inner in files.decoder_weights(shape.decoder)[0].values()) / 1e9
        for name, shape in sizes.items()
    }
    assert billions["qwen3-asr-1.7b-shape"] == pytest.approx(1.72, abs=0.01)  # Qwen3-1.7B
    assert billions["qwen3-asr-0.6b-shape"] == pytest.approx(0.60, abs=0.01)  # Qwen3-0.6B
    assert billions["qwen2.5-omni-7b-shape"] == pytest.approx(7.62, abs=0.01)  # Qwen2.5-7B
    assert billions["qwen2.5-omni-3b-shape"] == pytest.approx(3.40, abs=0.01)  # Qwen2.5-3B with a head
    assert sizes["qwen3-asr-1.7b-shape"].prompt_tokens == 16 + 390
    assert sizes["qwen2.5-omni-7b-shape"].prompt_tokens == 32 + 750
    assert sizes["qwen3-asr-1.7b-shape"].frames == 800
    for name, entry in entries.items():
        if entry.shape_of and entries[entry.shape_of].options:  # as precise as the model that it stands for
            assert sizes[name].bits == entries[entry.shape_of].options["decoder_bits"]
    assert sizes["qwen2.5-omni-7b-shape"].frames == 400


def test_a_disk_that_is_too_full_is_told_before_anything_is_written(tmp_path, monkeypatch):
    usage = files.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(ModelError, match="GB on disk"):
        write_shape("tiny", TINY, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": "two"}, "'layers'"),
        ({"colour": 1}, "'colour'"),
        ({"windows": 0}, "'windows'"),
        ({"bits": 5}, "'bits'"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(ModelError, match=message):
        read_shape(TINY | options)
