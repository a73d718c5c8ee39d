"""The whole tool on stand-ins of audio language models: a recording of more than one window."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

DATA = Path(__file__).parents[2] / "data"
PAIRS = [("qwen2_audio", "qwen2_5_omni"), ("qwen2_5_omni", "qwen2_5_omni"), ("qwen3_asr", "qwen3_asr")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def models(monkeypatch, cache):
    lines = ["schema = 1"]
    if not (cache / "stand_ins").exists():
        shutil.copytree(DATA / "stand_ins", cache / "stand_ins")
    for folder in sorted((cache / "stand_ins").iterdir()):
        files = sorted(path.name for path in folder.iterdir() if not path.name.startswith("reference"))
        source = f'kind = "path", directory = {json.dumps(str(folder))}, files = {json.dumps(files)}'
        lines += [f"[models.{folder.name}]", 'plugin = "mnn_llm"', 'role = "any"', f"source = {{ {source} }}"]
    (cache / "models.toml").write_text("\n".join(lines))
    monkeypatch.setenv("AS2D_MODELS", str(cache / "models.toml"))
    monkeypatch.setenv("AS2D_CACHE_DIR", str(cache))


@pytest.fixture
def recording(tmp_path):
    wave, rate = soundfile.read(DATA / "jfk.flac", dtype="float32")
    soundfile.write(tmp_path / "long.wav", np.tile(wave, 4)[: 40 * rate], rate)
    return tmp_path / "long.wav"


@pytest.mark.parametrize(("target", "drafter"), PAIRS)
def test_drafts_change_nothing_and_every_window_is_heard(as2d, models, recording, target, drafter):
    pair = ["--model", target, "--drafter", drafter, "--budget", "4"]
    run = as2d("transcribe", recording, *pair, "--compare", "--no-vad", "--json")
    assert run.code == 0
    spoken, report = run.records()
    assert report["report"]["comparison"]["identical"] == report["report"]["comparison"]["windows"] >= 2
    assert report["report"]["stats"]["drafted"] > 0
    assert spoken["segments"][0]["start"] == 0
    assert spoken["segments"][-1]["end"] == pytest.approx(40, abs=0.1)


def test_a_model_that_listens_is_asked_about_every_window(as2d, models, recording):
    pair = ["--model", "qwen2_audio", "--drafter", "qwen2_audio", "--reader", "none", "--budget", "4"]
    asked = ["-q", "Who speaks?", "-q", "Of what?", "--compare", "--no-vad", "--json"]
    run = as2d("ask", recording, *asked, *pair)
    assert run.code == 0
    first, second, report = run.records()
    assert first["answer"] != second["answer"]
    assert first["times"][0]["start"] == 0
    assert first["times"][-1]["end"] == pytest.approx(40, abs=0.1)
    comparison = report["report"]["answering"]["comparison"]
    assert comparison["identical"] == comparison["windows"] == 4
