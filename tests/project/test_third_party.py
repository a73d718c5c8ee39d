"""A drafter of somebody else's: written like any new one, installed with pip, found and used."""

import ast
import json
import os
import shutil
import subprocess
import sysconfig
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.models.registry import load_registry

FIXTURE = Path(__file__).parents[1] / "fixtures" / "as2d-phrases"
SPOKEN = "Good morning. This recording is in the public domain. All of the recordings are read aloud."
SPEAKER = f"""
[models.speaker]
plugin = "scripted"
role = "target"
source = {{ kind = "none" }}
options = {{ text = "{SPOKEN}", encode_ms = 300.0, step_ms = 2.0 }}
"""


class Environment:
    """A virtual environment that sees the packages of this one, and has one more."""

    def __init__(self, folder):
        venv.create(folder / "venv", with_pip=False)
        self.python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.package = shutil.copytree(FIXTURE, folder / "as2d-phrases")
        own = Path(self.run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
        seen = sysconfig.get_path("purelib")
        (own / "seen.pth").write_text(f"import site; site.addsitedir({seen!r})\n", encoding="utf-8")
        offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        self.run("-m", "pip", "install", "--quiet", *offline, str(self.package))

    def run(self, *arguments, **environment):
        ended = subprocess.run(
            [self.python, *arguments],
            cwd=getattr(self, "package", None),
            env=os.environ | environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended

    def as2d(self, *arguments, **environment):
        return self.run("-c", "from as2d_cli.cli.app import main; main()", *arguments, **environment)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("third party"))


def test_it_is_found_and_listed(environment):
    listed = {one["name"]: one for one in json.loads(environment.as2d("plugins", "list", "--json").stdout)}
    assert listed["phrases"] == {
        "name": "phrases",
        "module": "as2d_phrases",
        "package": "as2d-phrases",
        "version": "0.1.0",
        "api": "as2d.v1",
        "usable": True,
        "roles": ["drafter"],
        "hooks": ["as2d_convert", "as2d_load_drafter"],
    }
    assert "whisper" in listed


def test_its_own_tests_pass(environment):
    ended = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "7 passed" in ended.stdout


def test_its_drafts_are_taken_where_they_are_said(environment, scripted_cache, sound, tmp_path):
    models = tmp_path / "models.toml"
    models.write_text((environment.package / "models.toml").read_text() + SPEAKER)
    settings = {"AS2D_MODELS": str(models), "AS2D_CACHE_DIR": str(scripted_cache)}
    chosen = ["--target", "speaker", "--drafter", "phrases", "--budget", "8", "--json"]
    ended = environment.as2d("transcribe", str(sound("a.wav")), *chosen, **settings)
    document, report = map(json.loads, ended.stdout.splitlines())
    assert document["text"] == SPOKEN
    assert report["report"]["drafter"] == "phrases"
    assert report["report"]["stats"]["accepted"] > 40


def definitions(module):
    """Return names and arguments of what a module defines."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            found[node.name] = (ast.unparse(node.args), *map(ast.unparse, node.decorator_list))
        elif isinstance(node, ast.ClassDef):
            found[node.name] = tuple(map(ast.unparse, node.bases))
    return found


def test_it_is_what_the_command_writes_and_an_idea(as2d, tmp_path):
    as2d("plugins", "new", "phrases")
    written = tmp_path / "as2d-phrases"
    assert {path.name for path in written.iterdir()} == {path.name for path in FIXTURE.iterdir()}
    assert (written / "pyproject.toml").read_text() == (FIXTURE / "pyproject.toml").read_text()
    for module in written.glob("*.py"):
        assert definitions(module) == definitions(FIXTURE / module.name)
    ours, theirs = (load_registry(folder / "models.toml").model("phrases") for folder in (written, FIXTURE))
    assert replace(theirs, options={}) == ours
