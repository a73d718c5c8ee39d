"""Nothing that the engines bring along runs pip or telemetry."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

WATCHED = """
import json, sys
sys.path[:] = {path}
seen = []
EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.system",
          "os.exec", "os.posix_spawn", "os.fork")
def is_forbidden(name):
    return "aliyun" in name or "telemetry" in name or name.split(".")[0] == "pip"
def watch(event, arguments):
    name = str(arguments[0]).lower() if arguments else ""
    if event in EVENTS or (event == "import" and is_forbidden(name)):
        seen.append(event)
sys.addaudithook(watch)
{deed}
modules = [name for name in sys.modules if name.startswith("MNN.tools") or is_forbidden(name)]
open({report!r}, "w").write(json.dumps([seen, modules]))
"""


def audited(deed: str, tmp_path: Path) -> tuple[list[str], list[str]]:
    """Run `deed` in a new interpreter; return its forbidden events and the forbidden modules in it."""
    report = tmp_path / "report.json"
    code = WATCHED.format(path=sys.path, deed=deed, report=str(report))
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, cwd=tmp_path)
    seen, modules = json.loads(report.read_text())
    return seen, modules


def write_tiny_graph(path: Path) -> None:
    weights = numpy_helper.from_array(np.eye(64, dtype=np.float32), "w")
    shape = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64])
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "tiny", [shape], [result], [weights]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


@pytest.mark.parametrize("bits", [8, 32])
def test_converting_and_loading_a_graph_starts_no_process_and_opens_no_connection(tmp_path, bits):
    write_tiny_graph(tmp_path / "tiny.onnx")
    deed = f"""
from pathlib import Path
from as2d_whisper.backends.mnn.convert import onnx_to_mnn
onnx_to_mnn(Path("tiny.onnx"), Path("tiny.mnn"), weight_bits={bits})
from as2d_cli.models.native import import_native
import_native("_mnncengine")
import MNN.nn as nn
nn.load_module_from_file("tiny.mnn", ["x"], ["y"])
"""
    assert audited(deed, tmp_path) == ([], [])
    assert (tmp_path / "tiny.mnn").stat().st_size > 0


def write_tiny_whisper(folder: Path) -> None:
    """Write a random Whisper as the tests of the plugin do."""
    spec = importlib.util.spec_from_file_location(
        "tiny_whispers", Path(__file__).parents[1] / "whisper" / "conftest.py"
    )
    tiny_whispers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiny_whispers)
    tiny_whispers.TinyWhisper().write_ctranslate2(folder)


@pytest.mark.parametrize("backend", ["mnn", "openvino"])
def test_converting_and_running_a_whisper_starts_no_process_and_opens_no_connection(tmp_path, backend):
    """All that the plugin does, from the source files to a decided token and to words."""
    write_tiny_whisper(tmp_path / "source")
    (tmp_path / "model").mkdir()
    deed = f"""
from pathlib import Path
import numpy as np
from as2d_cli.domain.types import Request
from as2d_whisper import plugin
class Entry:
    options = {{"backend": {backend!r}}}
plugin.as2d_convert(Entry, Path("source"), Path("model"))
plugin.as2d_load_target(entry=Entry, path=Path("model"), threads=2, decode_threads=2)
model = plugin.as2d_load_drafter(entry=Entry, path=Path("model"), threads=2)
features = np.zeros(model.spec.features.shape, np.float32)
next(model.draft(features, Request(language="en")))
target = plugin.as2d_load_target(entry=Entry, path=Path("model"), threads=1, decode_threads=1)
session = target.open(features, Request(language="en", word_times=True))
session.words([int(token) for token in session.forward(session.prompt[-1:])], 1.0)
"""
    assert audited(deed, tmp_path) == ([], [])
    assert {file.name for file in (tmp_path / "model").iterdir()} >= {
        "facts.json",
        *({"encoder.mnn", "decoder.mnn"} if backend == "mnn" else {"encoder.xml", "decoder.xml"}),
    }


def test_converting_and_running_an_audio_language_model_starts_no_process_and_opens_no_connection(tmp_path):
    source = Path(__file__).parents[1] / "data" / "stand_ins" / "qwen3_asr"
    (tmp_path / "model").mkdir()
    deed = f"""
from pathlib import Path
import numpy as np
from as2d_cli.domain.types import Request
from as2d_mnn_llm import plugin
class Entry:
    options = {{}}
plugin.as2d_convert(Entry, Path({str(source)!r}), Path("model"))
target = plugin.as2d_load_target(Entry, Path("model"), 1)
session = target.open(np.zeros(target.spec.features.shape, np.float32), Request())
session.forward(session.prompt[-1:])
del session, target  # as a worker does: MNN may crash when its models outlive the interpreter
"""
    assert audited(deed, tmp_path) == ([], [])


@pytest.mark.parametrize(
    ("deed", "event"),
    [
        ("import subprocess; subprocess.run([sys.executable, '-c', ''])", "subprocess.Popen"),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 9))", "socket.connect"),
        ("import os; os.system('exit 0')", "os.system"),
        ("import pip", "import"),
        ("import openvino", "import"),
    ],
)
def test_the_watch_of_these_tests_would_see_it(tmp_path, deed, event):
    assert event in audited(deed, tmp_path)[0]
