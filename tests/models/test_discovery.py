"""What is known of plugins without importing them, and which are refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from as2d_cli.domain.errors import PluginError
from as2d_cli.models.discovery import find_plugin, list_plugins

TOY_PLUGIN = Path(__file__).parents[1] / "data" / "toy_plugin"


@pytest.fixture(autouse=True)
def toy_plugin(monkeypatch):
    monkeypatch.syspath_prepend(TOY_PLUGIN)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package with one plugin, as far as anybody can tell."""

    def install(name, version, entry_point, group="as2d.v1", source=""):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (folder / "entry_points.txt").write_text(f"[{group}]\n{entry_point}\n")
        (tmp_path / f"{entry_point.partition('= ')[2]}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)

    return install


def listed():
    return {info.name: info for info in list_plugins()}


def test_plugins_are_listed_with_package_and_hooks_and_none_is_imported():
    code = (
        f"import sys; sys.path[:] = {[str(TOY_PLUGIN), *sys.path]}\n"
        "from as2d_cli.models.discovery import list_plugins\n"
        "found = {one.name: one for one in list_plugins()}\n"
        "print(found['toy'], found['toy'].hooks, found['toy_broken'].hooks, sep='|')\n"
        "print([name for name in sys.modules if name.startswith(('as2d_toy', 'as2d_wh', 'numpy', 'MNN'))])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.splitlines() == [
        "plugin 'toy' (as2d-toy 1.2)|('as2d_convert', 'as2d_load_tokenizer')|()",
        "[]",
    ]


def test_a_module_that_is_not_there_or_is_no_python_is_listed_without_hooks(installed, tmp_path):
    installed("as2d-odd", "1", "odd = as2d_odd", source="def as2d_convert(")
    assert listed()["odd"].hooks is None
    for deep in ("-" * 50_000 + "1", "+".join("1" * 50_000)):
        (tmp_path / "as2d_odd.py").write_text(deep)
        assert not listed()["odd"].hooks  # some versions of Python follow it
    (tmp_path / "as2d_odd.py").unlink()
    assert listed()["odd"].hooks is None
    assert listed()["odd"].roles == ()


def test_an_unknown_plugin_is_answered_with_the_nearest_name_and_what_makes_a_plugin():
    with pytest.raises(PluginError, match="no plugin called 'toyy'") as caught:
        find_plugin("toyy")
    assert "did you mean 'toy'? see: as2d plugins list; " in str(caught.value.hint)
    assert "as2d.v1" in str(caught.value.hint)


def test_two_packages_with_the_same_plugin_name_are_refused(installed):
    installed("as2d-other", "3", "toy = as2d_other")
    with pytest.raises(PluginError, match="'toy': as2d-other, as2d-toy"):
        find_plugin("toy")


def test_a_plugin_for_another_version_of_the_hooks_is_listed_and_refused_by_name_and_version(installed):
    installed("as2d-future", "7.1", "future = as2d_future", group="as2d.v2")
    assert listed()["future"].api == "as2d.v2"
    with pytest.raises(PluginError) as caught:
        find_plugin("future")
    assert caught.value.message == (
        "plugin 'future' (as2d-future 7.1) is made for as2d.v2, this version of as2d for as2d.v1"
    )


def test_a_plugin_for_two_versions_of_the_hooks_is_used(installed):
    installed("as2d-both", "1", "toy = as2d_toy", group="as2d.v2")
    assert find_plugin("toy").group == "as2d.v1"


def test_only_plugins_that_are_allowed_are_there(monkeypatch):
    monkeypatch.setenv("AS2D_LOAD_PLUGINS", "toy, lookup")
    assert list(listed()) == ["lookup", "toy"]
    assert find_plugin("toy").value == "as2d_toy"
    with pytest.raises(PluginError, match="'whisper' is not among AS2D_LOAD_PLUGINS"):
        find_plugin("whisper")


@pytest.mark.parametrize("damage", ["odd", "odd = not: a:: module !", "odd = \udcff"])
def test_damaged_files_of_a_package_cost_no_other_plugin(installed, tmp_path, damage):
    installed("as2d-odd", "1", "odd = as2d_odd")
    package = tmp_path / "as2d_odd-1.dist-info"
    (package / "entry_points.txt").write_bytes(os.fsencode(f"[as2d.v1]\n{damage}\n"))
    (package / "METADATA").write_bytes(b"\xff")
    assert str(listed()["toy"]) == "plugin 'toy' (as2d-toy 1.2)"
    assert [str(one) for name, one in listed().items() if name == "odd"] in (
        [],
        ["plugin 'odd' (unknown package ?)"],
    )
