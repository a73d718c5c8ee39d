"""The distribution: what is built holds what is needed, and is what these tests run."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.metadata import Metadata

import as2d_cli
import as2d_whisper

ROOT = Path(__file__).parents[2]
SOURCES = ("as2d_cli", "plugins", "models.toml", "pyproject.toml", "README.md", "LICENSE")
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
DATA = {
    *("as2d_cli/models/models.toml", "as2d_cli/transcripts/transcript.schema.json", "as2d_cli/py.typed"),
    "as2d_cli/bench/acceptance.json",
    *("as2d_cli/testing/skeleton/models.toml", "as2d_cli/testing/skeleton/pyproject.toml"),
}


def build(kind, source, folder):
    command = [sys.executable, "-c", BUILD, f"build_{kind}", folder]
    built = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder / built.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, copy)
    return build("sdist", copy, copy), copy


@pytest.fixture(scope="module")
def packed_wheel(sdist, tmp_path_factory):
    """The wheel that the source distribution makes."""
    packed, _ = sdist
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return build("wheel", folder / packed.name.removesuffix(".tar.gz"), folder)


@pytest.fixture(scope="module")
def wheel(packed_wheel):
    """Its files, by name."""
    return contents(packed_wheel)


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_every_module_and_what_they_read(wheel):
    folders = {path.name: path for path in [ROOT / "as2d_cli", *(ROOT / "plugins").glob("as2d_*")]}
    modules = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in folders.items()
        for path in folder.rglob("*.py")
    }
    info = {name for name in wheel if ".dist-info/" in name}
    assert wheel.keys() - info == modules | DATA
    assert wheel["as2d_cli/models/models.toml"] == (ROOT / "models.toml").read_bytes()


def test_the_source_distribution_makes_the_wheel_that_the_sources_make(sdist, wheel, tmp_path):
    _, copy = sdist
    assert contents(build("wheel", copy, tmp_path)) == wheel


def test_both_distributions_pass_the_check_of_the_package_index(sdist, packed_wheel):
    command = [sys.executable, "-m", "twine", "check", "--strict", sdist[0], packed_wheel]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.count("PASSED") == 2


def test_the_metadata_are_valid_and_tell_what_pyproject_does(wheel):
    folder = f"as2d-{as2d_cli.__version__}.dist-info"
    told = Metadata.from_email(wheel[f"{folder}/METADATA"], validate=True)
    assert (told.name, str(told.version)) == ("as2d", as2d_cli.__version__)
    assert str(told.requires_python) == ">=3.10"
    assert told.description_content_type == "text/markdown"
    assert told.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert told.license_expression == "MIT"
    assert f"{folder}/licenses/LICENSE" in wheel
    points = wheel[f"{folder}/entry_points.txt"].decode()
    assert "as2d = as2d_cli.__main__:main" in points
    assert "[as2d.v1]" in points


def test_what_is_tested_is_what_is_installed_and_not_the_checkout():
    installed = metadata.distribution("as2d")
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable") and os.environ.get("CI") != "true":
        pytest.skip("as2d is installed so that changes take effect at once")
    code = "import as2d_cli, as2d_whisper; print(as2d_cli.__file__); print(as2d_whisper.__file__)"
    child = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    expected = [str(installed.locate_file(f"{name}/__init__.py")) for name in ("as2d_cli", "as2d_whisper")]
    assert [as2d_cli.__file__, as2d_whisper.__file__] == expected, "run pytest, not python -m pytest"
    assert child.stdout.split() == expected
    assert "site-packages" in as2d_cli.__file__
