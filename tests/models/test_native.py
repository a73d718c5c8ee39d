"""Extension modules load whatever stack they ask for; nothing else of them is changed."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from as2d_cli.models import native

ENGINE = Path(importlib.util.find_spec("_mnncengine").origin)
LOADED = """
import sys
from pathlib import Path
from as2d_cli.models.native import import_cleared
first = import_cleared("_mnncengine", Path(sys.argv[1]))
second = import_cleared("_tools", Path(sys.argv[2]))
import _mnncengine, _tools
assert (_mnncengine, _tools) == (first, second) and callable(_tools.mnnconvert)
mapped = Path("/proc/self/maps").read_text()
assert "/memfd:_mnncengine" in mapped and sys.argv[1] not in mapped and sys.argv[2] not in mapped
import MNN.expr
print(float((MNN.expr.const([20.0], [1]) + MNN.expr.const([22.0], [1])).read()[0]))
"""

PLUGINS = Path(__file__).parents[2] / "plugins"

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")


@linux_only
def test_of_an_object_only_the_flag_is_changed_that_asks_for_an_executable_stack():
    before = ENGINE.read_bytes()
    after = native.cleared(before)
    assert len(after) == len(before)
    changed = [at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    assert [(before[at], after[at]) for at in changed] in (
        [(7, 6)],
        [],
    )  # RWE to RW; a later wheel may be clean
    assert native.cleared(after) == after


@linux_only
def test_mnn_works_when_it_is_loaded_without_the_flag():
    tools = importlib.util.find_spec("_tools").origin
    command = [sys.executable, "-c", LOADED, ENGINE, tools]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "42.0" in ended.stdout.splitlines()  # MNN, too, prints there


def test_only_a_refused_stack_is_a_reason_to_load_an_object_otherwise(monkeypatch):
    def refuse(_name):
        raise ImportError(message)

    monkeypatch.setattr(native.importlib, "import_module", refuse)
    monkeypatch.setattr(native, "import_cleared", lambda name, file: (name, file))
    message = "_mnncengine.so: cannot enable executable stack as shared object requires: Invalid argument"
    assert native.import_native("_mnncengine") == ("_mnncengine", ENGINE)
    message = "_mnncengine.so: undefined symbol: x"
    with pytest.raises(ImportError, match="undefined symbol"):
        native.import_native("_mnncengine")


def test_what_is_no_object_of_64_bits_is_refused():
    with pytest.raises(ImportError, match="not a shared object of 64 bits"):
        native.cleared(b"MZ" + bytes(100))


def imports_mnn(node):
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return [name for name in names if name.partition(".")[0] in ("MNN", "_mnncengine", "_tools")]


def imports_native(node):
    return isinstance(node, ast.Call) and ast.unparse(node) == "import_native('_mnncengine')"


@pytest.mark.parametrize("file", sorted(PLUGINS.rglob("*.py")), ids=lambda file: file.name)
def test_whatever_imports_mnn_sees_to_its_native_module_first(file):
    lines = {"mnn": [], "native": []}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom) and imports_mnn(node):
            lines["mnn"].append(node.lineno)
        elif imports_native(node):
            lines["native"].append(node.lineno)
    assert all(line - 1 in lines["native"] for line in lines["mnn"]), lines
