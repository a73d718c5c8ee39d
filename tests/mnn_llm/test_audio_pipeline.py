"""The whole tool on stand-ins of audio language models: a recording of more than one window."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from as2d_cli import transcribe

DATA = Path(__file__).parents[1] / "data"
PAIRS = [("qwen2_audio", "qwen2_5_omni"), ("qwen2_5_omni", "qwen2_5_omni"), ("qwen3_asr", "qwen3_asr")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def models(tmp_path, monkeypatch, cache):
    lines = ["schema = 1"]
    for folder in sorted((DATA / "stand_ins").iterdir()):
        files = sorted(path.name for path in folder.iterdir() if not path.name.startswith("reference"))
        source = f'kind = "path", directory = {json.dumps(str(folder))}, files = {json.dumps(files)}'
        lines += [f"[models.{folder.name}]", 'plugin = "mnn_llm"', 'role = "any"', f"source = {{ {source} }}"]
    (tmp_path / "models.toml").write_text("\n".join(lines))
    monkeypatch.setenv("AS2D_MODELS", str(tmp_path / "models.toml"))
    monkeypatch.setenv("AS2D_CACHE_DIR", str(cache))


@pytest.fixture
def recording(tmp_path):
    wave, rate = soundfile.read(DATA / "jfk.flac", dtype="float32")
    soundfile.write(tmp_path / "long.wav", np.tile(wave, 4)[: 40 * rate], rate)
    return tmp_path / "long.wav"


@pytest.mark.parametrize(("target", "drafter"), PAIRS)
def test_drafts_change_nothing_and_every_window_is_heard(models, recording, target, drafter):
    def run(drafter):
        (outcome,) = transcribe(recording, model=target, drafter=drafter, vad=False, threads=1)
        assert outcome.error is None
        return outcome

    alone, drafted = run("none"), run(drafter)
    assert drafted.transcript.text == alone.transcript.text
    segments = alone.transcript.segments
    assert len(segments) >= 2
    assert segments[0].start_s == 0
    assert segments[-1].end_s == pytest.approx(40, abs=0.1)
