"""`as2d models export`: what works without PyTorch, and what is told where it is needed."""

import importlib
import json
import shutil
import sys
from importlib import util
from pathlib import Path

import pytest

from as2d_cli.domain.errors import ModelError
from as2d_cli.models.native import import_native
from as2d_mnn_llm.checkpoints import torch_export

STAND_INS = Path(__file__).parents[2] / "data" / "stand_ins"


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
    monkeypatch.setattr(import_native("_tools"), "mnnconvert", called.append)
    with torch_export._native_converter_only():
        script = importlib.import_module("MNN.tools").mnnconvert
        assert importlib.import_module("MNN.tools.mnnconvert") is script
        assert not hasattr(script, "__file__"), "the wheel's own script, which installs a package and uploads"
        monkeypatch.setattr(sys, "argv", ["mnnconvert", "-f", "ONNX"])
        script.main()
    assert called == [["mnnconvert", "-f", "ONNX"]]
    assert "MNN.tools" not in sys.modules


MAIN = """
import beside, json, sys, torch
from pathlib import Path

def build_args(parser):
    for option in ("--path", "--dst_path", "--quant_bit", "--quant_block", "--lm_quant_bit", "--export"):
        parser.add_argument(option)
    for option in ("--seperate_embed", "--hqq"):
        parser.add_argument(option, action="store_true")

class LlmExporter:
    def __init__(self, args):
        self.args, self.visual, self.talker, self.audio = args, object(), object(), beside.Audio()

    def export(self, kind):
        from MNN.tools import mnnconvert
        sys.argv = ["mnnconvert", kind]
        mnnconvert.main()
        if self.args.quant_bit == "16":
            raise RuntimeError("out of memory")
        folder = Path(self.args.dst_path)
        (folder / "onnx").mkdir(parents=True)
        Path("export.log").touch()
        told = {**vars(self.args), "audio": self.audio.quant_bit, "others": [self.visual, self.talker]}
        told["grad"] = torch.GRAD[0]
        for name in ("llm.mnn.json", "export_args.json", "llm.mnn"):
            (folder / name).write_text(json.dumps(told))
"""


NO_GRAD = """
from contextlib import contextmanager

GRAD = [True]

@contextmanager
def no_grad():
    GRAD[0] = False
    yield
    GRAD[0] = True
"""


@pytest.fixture
def stand_in_for_llmexport(tmp_path, monkeypatch):
    """Put packages on the path that are found, and an exporter that keeps what it is told."""
    packages, before = tmp_path / "packages", set(sys.modules)
    files = {
        "torch/__init__.py": NO_GRAD,
        "transformers/__init__.py": "",
        "llmexport/__init__.py": "",
        "llmexport/llmexport.py": MAIN,
        "llmexport/beside.py": "class Audio:\n    quant_bit = 16\n",
    }
    for name, text in files.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    monkeypatch.delitem(sys.modules, "llmexport", raising=False)
    monkeypatch.syspath_prepend(packages)
    converted = []
    monkeypatch.setattr(import_native("_tools"), "mnnconvert", converted.append)
    yield converted
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    shutil.copyfile(STAND_INS / "qwen2_audio" / "tokenizer.json", folder / "tokenizer.json")
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2_audio"}))
    (folder / "model.safetensors").touch()
    return folder


def test_llmexport_writes_the_decoder_as_asked_and_encoder_and_head_no_coarser_than_8_bits(
    stand_in_for_llmexport, checkpoint, tmp_path
):
    before, arguments = Path.cwd(), list(sys.argv)
    torch_export.export(checkpoint, tmp_path / "out", 4, hqq=True)
    assert (Path.cwd(), sys.argv) == (before, arguments)
    assert stand_in_for_llmexport == [["mnnconvert", "mnn"]]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"llm.mnn", "tokenizer.json"}
    told = json.loads((tmp_path / "out" / "llm.mnn").read_text())
    assert (told["quant_bit"], told["quant_block"], told["lm_quant_bit"]) == ("4", "64", "8")
    assert (told["audio"], told["others"], told["seperate_embed"], told["hqq"]) == (
        8,
        [None, None],
        True,
        True,
    )
    assert told["grad"] is False
    assert not list(tmp_path.rglob("export.log"))


def test_what_speaks_and_sees_is_not_loaded(checkpoint, tmp_path):
    thinker = {"vision_config": {"depth": 32, "hidden_size": 1280}, "text_config": {"hidden_size": 64}}
    settings = {"model_type": "qwen2_5_omni", "enable_audio_output": True, "thinker_config": thinker}
    (checkpoint / "config.json").write_text(json.dumps(settings))
    torch_export._write_hearing_part(checkpoint, tmp_path / "hearing")
    made = json.loads((tmp_path / "hearing" / "config.json").read_text())
    assert made.pop("enable_audio_output") is False
    assert made["thinker_config"]["vision_config"].pop("depth") == 0
    assert made["thinker_config"]["text_config"] == thinker["text_config"]
    assert json.loads((checkpoint / "config.json").read_text()) == settings
    assert (tmp_path / "hearing" / "model.safetensors").samefile(checkpoint / "model.safetensors")


def test_an_export_that_fails_leaves_nothing_and_says_why(stand_in_for_llmexport, checkpoint, tmp_path):
    before, there = Path.cwd(), set(tmp_path.iterdir())
    with pytest.raises(ModelError, match="llmexport failed: RuntimeError: out of memory"):
        torch_export.export(checkpoint, tmp_path / "out", 16)
    assert (Path.cwd(), set(tmp_path.iterdir())) == (before, there)
    assert "MNN.tools" not in sys.modules


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "{", "config.json"),
        ("config.json", json.dumps({"auto_map": {}}), "code of its own"),
    ],
)
def test_a_checkpoint_that_is_damaged_or_brings_code_never_reaches_llmexport(
    stand_in_for_llmexport, checkpoint, tmp_path, file, content, message
):
    (checkpoint / file).write_text(content)
    with pytest.raises(ModelError, match=message):
        torch_export.export(checkpoint, tmp_path / "out", 8)
    assert stand_in_for_llmexport == []
    assert not (tmp_path / "out").exists()


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
