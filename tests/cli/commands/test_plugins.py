"""`as2d plugins`, and runs with plugins that are broken."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"
BROKEN = """
schema = 1
[models.wreck]
plugin = "toy_broken"
role = "any"
source = { kind = "none" }
[models.speaker]
plugin = "scripted"
role = "any"
source = { kind = "none" }
"""


@pytest.fixture
def as2d_with_toys(as2d, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(DATA / "toy_plugin"), prepend=":")
    return as2d


def test_all_plugins_are_listed_also_a_broken_one(as2d_with_toys):
    ended = as2d_with_toys("plugins", "list")
    assert (ended.code, ended.err) == (0, "")
    rows = [line.split() for line in ended.out.splitlines()]
    assert rows[0][:4] == ["NAME", "PACKAGE", "VERSION", "API"]
    assert ["toy_broken", "as2d-toy", "1.2", "as2d.v1", "-"] in rows
    assert next(row for row in rows if row[0] == "lookup")[4:] == ["inner", "drafter"]


def test_the_json_list_tells_hooks_and_roles(as2d_with_toys):
    plugins = {one["name"]: one for one in json.loads(as2d_with_toys("plugins", "list", "--json").out)}
    assert plugins["whisper"]["roles"] == ["target", "drafter"]
    assert plugins["toy"] == {
        "name": "toy",
        "module": "as2d_toy",
        "package": "as2d-toy",
        "version": "1.2",
        "api": "as2d.v1",
        "usable": True,
        "roles": [],
        "hooks": ["as2d_convert", "as2d_load_tokenizer"],
    }


def test_a_drafter_whose_plugin_is_broken_costs_one_warning(as2d_with_toys, scripted_cache, sound, tmp_path):
    (tmp_path / "own.toml").write_text(BROKEN)
    chosen = ["--target", "speaker", "--drafter", "wreck"]
    environment = {"AS2D_MODELS": str(tmp_path / "own.toml"), "AS2D_CACHE_DIR": str(scripted_cache)}
    ended = as2d_with_toys("transcribe", sound("a.wav"), *chosen, **environment)
    assert ended.code == 0
    assert len(ended.out.split()) == 40
    warning = "plugin 'toy_broken' (as2d-toy 1.2) cannot be imported: RuntimeError: no such device"
    assert ended.err.count(warning) == 1
    assert "Traceback" not in ended.err

    ended = as2d_with_toys("transcribe", sound("a.wav"), "--target", "wreck", **environment)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith(f"as2d: error: {warning}\nhint: ")


def test_a_new_plugin_keeps_its_contract_as_it_is(as2d, tmp_path):
    ended = as2d("plugins", "new", "my_words")
    folder = tmp_path / "as2d-my_words"
    assert ended.code == 0
    assert ended.out.splitlines() == [
        f"as2d-my_words/{name}"
        for name in ("as2d_my_words.py", "models.toml", "pyproject.toml", "test_as2d_my_words.py")
    ]
    assert not [path for path in folder.iterdir() if "skeleton" in path.read_text().lower()]
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tested = subprocess.run(run, cwd=folder, check=False, capture_output=True, text=True)
    assert "7 passed" in tested.stdout, tested.stdout


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("My-Words", 2, "'My-Words' cannot be the name of a plugin"),
        ("class", 2, "'class' cannot be the name of a plugin"),
        ("../up", 2, "'../up' cannot be the name of a plugin"),
        ("whisper", 2, "plugin 'whisper' (as2d "),
        ("cli", 2, "a module as2d_cli is installed already"),
        ("mine", 1, "as2d-mine is there already"),
    ],
)
def test_a_name_that_is_taken_or_cannot_be_is_refused_and_nothing_is_written(
    as2d, tmp_path, name, code, told
):
    (tmp_path / "as2d-mine").mkdir()
    ended = as2d("plugins", "new", name)
    assert (ended.code, ended.out) == (code, "")
    assert told in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["as2d-mine"]
    assert list((tmp_path / "as2d-mine").iterdir()) == []
