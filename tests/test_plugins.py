"""Plugins: listing without import, loading one by name, what is said of broken ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from as2d_cli import plugins
from as2d_cli.errors import PluginError
from as2d_cli.model_sources import PathSource
from as2d_cli.registry import ModelEntry

TOY_PLUGIN = Path(__file__).parent / "data" / "toy_plugin"
ENTRY = ModelEntry("little", "toy", "any", PathSource(Path("weights"), ("a.txt",)))


@pytest.fixture(autouse=True)
def toy_plugin(monkeypatch):
    monkeypatch.syspath_prepend(TOY_PLUGIN)
    monkeypatch.delenv("AS2D_DEBUG_PLUGINS", raising=False)
    for name in ("as2d_toy", "as2d_toy_broken", "as2d_toy_misspelt"):
        sys.modules.pop(name, None)  # imported by another test of this process


def test_plugins_are_listed_with_their_package_and_none_is_imported():
    listed = {info.name: info for info in plugins.list_plugins()}
    assert str(listed["toy"]) == "plugin 'toy' (as2d-toy 1.2)"
    assert "toy_broken" in listed
    assert "as2d_toy" not in sys.modules


def test_loading_a_plugin_imports_no_other_plugin():
    plugins.load_plugin("toy")
    assert "as2d_toy" in sys.modules
    assert not {"as2d_toy_broken", "as2d_toy_misspelt"} & set(sys.modules)


def test_neither_listing_nor_loading_imports_numpy_or_a_model_runtime():
    code = (
        "from as2d_cli import plugins; plugins.list_plugins(); plugins.load_plugin('toy');"
        "print({'numpy', 'MNN', 'onnx'} & set(sys.modules))"
    )
    code = f"import sys; sys.path[:] = {[str(TOY_PLUGIN), *sys.path]}; {code}"
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout == "set()\n"


def test_an_import_failure_names_package_version_and_the_first_line_of_the_cause():
    with pytest.raises(PluginError) as caught:
        plugins.load_plugin("toy_broken")
    assert caught.value.message == (
        "plugin 'toy_broken' (as2d-toy 1.2) cannot be imported: RuntimeError: no such device"
    )
    assert "AS2D_DEBUG_PLUGINS" in str(caught.value.hint)


def test_the_debug_variable_lets_the_plugins_own_error_through(monkeypatch):
    monkeypatch.setenv("AS2D_DEBUG_PLUGINS", "1")
    with pytest.raises(RuntimeError, match="no such device"):
        plugins.load_plugin("toy_broken")


def test_a_misspelt_hook_is_an_error_that_names_it():
    with pytest.raises(PluginError, match="as2d_load_targt"):
        plugins.load_plugin("toy_misspelt")


def test_an_unknown_plugin_is_answered_with_the_nearest_name():
    with pytest.raises(PluginError, match="no plugin called 'toyy'") as caught:
        plugins.load_plugin("toyy")
    assert "did you mean 'toy'?" in str(caught.value.hint)


def test_two_packages_with_the_same_plugin_name_are_refused(tmp_path, monkeypatch):
    folder = tmp_path / "as2d_other-3.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: as2d-other\nVersion: 3\n")
    (folder / "entry_points.txt").write_text("[as2d.v1]\ntoy = as2d_other\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match="'toy': as2d-other, as2d-toy"):
        plugins.load_plugin("toy")


def test_a_hook_answers_for_the_entry_it_is_asked_for(tmp_path):
    assert plugins.load_tokenizer(ENTRY, tmp_path) == ("little", tmp_path)


@pytest.mark.parametrize(
    ("load", "words"), [(plugins.load_target, "as a target"), (plugins.load_drafter, "as a drafter")]
)
def test_a_plugin_without_an_answer_is_an_error_that_names_model_and_plugin(load, words, tmp_path):
    with pytest.raises(PluginError) as caught:
        load(ENTRY, tmp_path, 1)
    message = "model 'little': plugin 'toy' (as2d-toy 1.2) does not load it "
    assert caught.value.message == message + words


def test_the_converter_version_is_the_one_that_the_plugin_declares():
    assert plugins.converter_version("toy") == "as2d-toy/7"


def test_without_a_declared_converter_version_the_packages_version_counts(monkeypatch):
    assert plugins.converter_version("toy_misspelt") == "as2d-toy/1.2"
