"""Converting and loading MNN must not run what MNN's own converter script runs: pip and an upload."""

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
def watch(event, arguments):
    name = str(arguments[0]).lower() if arguments else ""
    if event in EVENTS or (event == "import" and ("aliyun" in name or name.split(".")[0] == "pip")):
        seen.append(event)
sys.addaudithook(watch)
{deed}
modules = [name for name in sys.modules if name.startswith("MNN.tools") or "aliyun" in name or name == "pip"]
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
from as2d_whisper.convert import onnx_to_mnn
onnx_to_mnn(Path("tiny.onnx"), Path("tiny.mnn"), weight_bits={bits})
import MNN.nn as nn
nn.load_module_from_file("tiny.mnn", ["x"], ["y"])
"""
    assert audited(deed, tmp_path) == ([], [])
    assert (tmp_path / "tiny.mnn").stat().st_size > 0


@pytest.mark.parametrize(
    ("deed", "event"),
    [
        ("import subprocess; subprocess.run([sys.executable, '-c', ''])", "subprocess.Popen"),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 9))", "socket.connect"),
        ("import os; os.system('exit 0')", "os.system"),
        ("import pip", "import"),
    ],
)
def test_the_watch_of_these_tests_would_see_it(tmp_path, deed, event):
    assert event in audited(deed, tmp_path)[0]
