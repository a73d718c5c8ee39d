"""Plugins: loading one by name, asking its hooks, what is said of broken ones."""

import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

from as2d_cli.domain.errors import PluginError
from as2d_cli.models import loader
from as2d_cli.models.hookspecs import hookimpl
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import PathSource

TOY_PLUGIN = Path(__file__).parents[1] / "data" / "toy_plugin"
ENTRY = ModelEntry("little", "toy", "any", PathSource(Path("weights"), ("a.txt",)))


@pytest.fixture(autouse=True)
def toy_plugin(monkeypatch):
    monkeypatch.syspath_prepend(TOY_PLUGIN)
    monkeypatch.delenv("AS2D_DEBUG_PLUGINS", raising=False)
    for name in ("as2d_toy", "as2d_toy_broken", "as2d_toy_misspelt"):
        sys.modules.pop(name, None)  # imported by another test of this process


def test_loading_a_plugin_imports_no_other_plugin():
    loader.load_plugin("toy")
    assert "as2d_toy" in sys.modules
    assert not {"as2d_toy_broken", "as2d_toy_misspelt"} & set(sys.modules)


def test_loading_imports_neither_numpy_nor_a_model_runtime():
    code = (
        "from as2d_cli.models import loader; loader.load_plugin('toy');"
        "print({'numpy', 'MNN', 'onnx'} & set(sys.modules))"
    )
    code = f"import sys; sys.path[:] = {[str(TOY_PLUGIN), *sys.path]}; {code}"
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout == "set()\n"


def test_an_import_failure_names_package_version_and_the_first_line_of_the_cause():
    with pytest.raises(PluginError) as caught:
        loader.load_plugin("toy_broken")
    assert caught.value.message == (
        "plugin 'toy_broken' (as2d-toy 1.2) cannot be imported: RuntimeError: no such device"
    )
    assert "AS2D_DEBUG_PLUGINS" in str(caught.value.hint)


def test_the_debug_variable_lets_the_plugins_own_error_through(monkeypatch):
    monkeypatch.setenv("AS2D_DEBUG_PLUGINS", "1")
    with pytest.raises(RuntimeError, match="no such device"):
        loader.load_plugin("toy_broken")


def test_a_misspelt_hook_is_an_error_that_names_it():
    with pytest.raises(PluginError, match="as2d_load_targt") as caught:
        loader.load_plugin("toy_misspelt")
    assert "did you mean 'as2d_load_target'?" in caught.value.hint


def test_an_argument_that_a_hook_does_not_have_is_named_with_those_that_it_has(monkeypatch):
    @hookimpl
    def as2d_load_drafter(entry, pth):
        return None

    monkeypatch.setattr(EntryPoint, "load", lambda self: SimpleNamespace(as2d_load_drafter=as2d_load_drafter))
    with pytest.raises(PluginError, match=r"'as2d_load_drafter': .*'pth'") as caught:
        loader.load_plugin("toy")
    assert caught.value.hint == "arguments of as2d_load_drafter: entry, path, threads"


def test_a_hook_answers_for_the_entry_it_is_asked_for(tmp_path):
    assert loader.load_tokenizer(ENTRY, tmp_path).fingerprint == f"little {tmp_path}"


def test_whatever_a_hook_raises_becomes_an_error_that_names_the_plugin(tmp_path):
    with pytest.raises(PluginError) as caught:
        loader.load_tokenizer(replace(ENTRY, options={"mode": "bug"}), tmp_path)
    assert caught.value.message == (
        "plugin 'toy' (as2d-toy 1.2) failed: ZeroDivisionError: a bug of the plugin"
    )


def test_an_answer_that_lacks_parts_of_its_protocol_is_refused_by_name_and_version(tmp_path):
    with pytest.raises(PluginError, match=r"'toy' \(as2d-toy 1.2\).*has no fingerprint, decode_bytes"):
        loader.load_tokenizer(replace(ENTRY, options={"mode": "odd"}), tmp_path)


def test_a_plugin_that_exits_when_it_is_imported_does_not_end_the_tool(monkeypatch):
    monkeypatch.setitem(sys.modules, "as2d_toy_broken", None)  # of all ways to fail, the import machinery's
    with pytest.raises(PluginError, match="ModuleNotFoundError"):
        loader.load_plugin("toy_broken")
    monkeypatch.setattr(EntryPoint, "load", lambda self: sys.exit("I give up"))
    with pytest.raises(PluginError, match="SystemExit: I give up"):
        loader.load_plugin("toy_broken")


def test_what_a_plugin_prints_is_not_taken_for_a_result(monkeypatch, tmp_path, capsys):
    load = EntryPoint.load
    monkeypatch.setattr(EntryPoint, "load", lambda self: sys.stdout.write("good morning\n") and load(self))
    loader.load_tokenizer(replace(ENTRY, options={"mode": "loud"}), tmp_path)
    assert capsys.readouterr() == ("", "good morning\nloading\n")


def test_what_native_code_prints_while_it_is_imported_is_not_taken_for_a_result(monkeypatch, capfd):
    load = EntryPoint.load
    monkeypatch.setattr(EntryPoint, "load", lambda self: os.write(1, b"a banner\n") and load(self))
    loader.load_plugin("toy")
    assert capfd.readouterr() == ("", "a banner\n")


def test_a_panic_of_native_code_is_an_error_that_names_the_plugin(monkeypatch):
    class PanicException(BaseException):  # as PyO3 has it
        pass

    def load(self):
        raise PanicException("index out of bounds")

    monkeypatch.setattr(EntryPoint, "load", load)
    with pytest.raises(
        PluginError, match=r"'toy' .* cannot be imported: PanicException: index out of bounds"
    ):
        loader.load_plugin("toy")


def test_a_tokenizer_that_fails_is_an_error_that_names_the_plugin(monkeypatch, tmp_path):
    count = loader.token_counter(ENTRY, tmp_path)
    assert count("abc") == 3
    with pytest.raises(PluginError, match=r"'toy' \(as2d-toy 1.2\) failed: TypeError"):
        count(5)


def test_options_of_loading_that_are_no_set_of_names_are_an_error(monkeypatch):
    loader.load_plugin("toy")
    monkeypatch.setattr(sys.modules["as2d_toy"], "LOADING_OPTIONS", 5)
    with pytest.raises(PluginError, match="its LOADING_OPTIONS are no set of names"):
        loader.loading_options(ENTRY)


def test_debugging_traces_hook_calls_and_lets_the_errors_of_hooks_through(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("AS2D_DEBUG_PLUGINS", "1")
    with pytest.raises(ZeroDivisionError):
        loader.load_tokenizer(replace(ENTRY, options={"mode": "bug"}), tmp_path)
    traced = capsys.readouterr()
    assert "as2d_load_tokenizer [hook]" in traced.err
    assert "little" in traced.err
    assert traced.out == ""


@pytest.mark.parametrize(
    ("load", "words"), [(loader.load_target, "as a target"), (loader.load_drafter, "as a drafter")]
)
def test_a_plugin_without_an_answer_is_an_error_that_names_model_and_plugin(load, words, tmp_path):
    with pytest.raises(PluginError) as caught:
        load(ENTRY, tmp_path, 1)
    message = "model 'little': plugin 'toy' (as2d-toy 1.2) does not load it "
    assert caught.value.message == message + words


def test_a_model_whose_spec_is_none_is_refused_by_name(monkeypatch, tmp_path):
    monkeypatch.setattr(loader, "_answered", lambda *_: SimpleNamespace(spec={"features": 80}))
    with pytest.raises(PluginError, match=r"'little': plugin 'toy' .* its spec is a dict, not a DrafterSpec"):
        loader.load_drafter(ENTRY, tmp_path, 1)


def test_the_converter_version_is_the_one_that_the_plugin_declares():
    assert loader.converter_version("toy") == "as2d-toy/7"


def test_without_a_declared_converter_version_the_packages_version_counts(monkeypatch):
    assert loader.converter_version("toy_misspelt") == "as2d-toy/1.2"
