"""`as2d models export`: what works without PyTorch, and what is told where it is needed."""

import json
from importlib import util
from pathlib import Path

import pytest

STAND_INS = Path(__file__).parents[1] / "data" / "stand_ins"


def test_an_exported_checkpoint_is_used_as_the_command_says(as2d, tmp_path, monkeypatch):
    run = as2d("models", "export", STAND_INS / "qwen3_asr", "--to", tmp_path / "mine")
    assert run.code == 0
    (tmp_path / "models.toml").write_text("schema = 1\n" + run.out)
    monkeypatch.setenv("AS2D_MODELS", str(tmp_path / "models.toml"))
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    pulled = as2d("models", "pull", "mine")
    assert pulled.code == 0
    assert (Path(pulled.out.strip()) / "audio.mnn").is_file()


def test_a_precision_that_there_is_not_is_refused(as2d, tmp_path):
    run = as2d("models", "export", STAND_INS / "qwen3_asr", "--to", tmp_path / "mine", "--bits", "5")
    assert run.code != 0
    assert "5 bits asked for" in run.err


def test_a_folder_that_exists_is_not_overwritten(as2d, tmp_path):
    run = as2d("models", "export", STAND_INS / "qwen3_asr", "--to", tmp_path)
    assert run.code != 0
    assert "exists already" in run.err


@pytest.mark.skipif(util.find_spec("llmexport") is not None, reason="the extra is installed")
def test_without_the_extra_the_command_says_how_to_get_it(as2d, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2_audio"}))
    run = as2d("models", "export", tmp_path, "--to", tmp_path / "out")
    assert run.code != 0
    assert 'pip install "as2d[export]"' in run.err
    assert not (tmp_path / "out").exists()
