"""`as2d models export`: what works without PyTorch, and what is told where it is needed."""

import importlib
import json
import sys
from importlib import util
from pathlib import Path

import _tools
import pytest

from as2d_cli.errors import ModelError
from as2d_mnn_llm import torch_export

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


def test_llmexport_gets_the_native_converter_in_place_of_the_wheels_script(monkeypatch):
    called = []
    monkeypatch.setattr(_tools, "mnnconvert", called.append)
    with torch_export._native_converter_only():
        script = importlib.import_module("MNN.tools").mnnconvert
        assert importlib.import_module("MNN.tools.mnnconvert") is script
        assert not hasattr(script, "__file__"), "the wheel's own script, which installs a package and uploads"
        monkeypatch.setattr(sys, "argv", ["mnnconvert", "-f", "ONNX"])
        script.main()
    assert called == [["mnnconvert", "-f", "ONNX"]]
    assert "MNN.tools" not in sys.modules


CODE = {"auto_map": {"AutoModel": "someone/else--evil.Model"}}


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", CODE),
        ("config.json", {"thinker_config": {"layers": [CODE]}}),
        ("tokenizer_config.json", CODE),
        ("audio/preprocessor_config.json", CODE),
    ],
)
def test_a_checkpoint_with_code_of_its_own_is_refused(tmp_path, file, content):
    (tmp_path / "audio").mkdir()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(ModelError, match=rf"{file}: the checkpoint brings code of its own"):
        torch_export._check(tmp_path)


def test_a_checkpoint_whose_weights_can_hold_code_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(ModelError, match=r"no model\.safetensors"):
        torch_export._check(tmp_path)
    (tmp_path / "model.safetensors").touch()
    torch_export._check(tmp_path)
