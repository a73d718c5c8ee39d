"""The shape of the house: few packages of bounded size that say what they may import, mirrored by tests."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from as2d_cli.system.toml import tomllib

ROOT = Path(__file__).parents[2]
CORE = ROOT / "as2d_cli"
MAX_TOP = 16
MAX_MODULES = 13
LARGE = {CORE / "decoding"}
"""The core of numpy functions, which algorithm.md goes through module by module."""
PACKAGES = sorted(path.name for path in CORE.iterdir() if list(path.glob("*.py")))
MIRRORS = {name: CORE / name for name in PACKAGES} | {
    path.name.removeprefix("as2d_"): path for path in (ROOT / "plugins").glob("as2d_*") if path.is_dir()
}
"""Packages by the name of their folder in tests/."""

CROSS_CUTTING = {
    "audio/test_damaged_audio.py": "damaged files, through all readers",
    "cli/test_complaints.py": "complaints about other tools, held against whole commands",
    "cli/test_faults.py": "faults injected into whole commands",
    "cli/test_inputs.py": "inputs and outputs of whole commands, as a shell sees them",
    "cli/test_kills.py": "whole commands, killed at any moment",
    "cluster/test_object_store.py": "remote inputs and outputs, with either executor",
    "cluster/test_ray.py": "whole commands on real clusters",
    "decoding/test_lossless.py": "the promise that all of decoding keeps together",
    "decoding/test_mutations.py": "proof that the tests of decoding can fail",
    "decoding/test_simulation.py": "claims about all of decoding, on synthetic drafts",
    "lookup/test_contract.py": "the plugin's contract",
    "lookup/test_lookup.py": "the plugin, which is one job",
    "mnn_llm/audio/test_contract.py": "the contract of audio language models",
    "mnn_llm/audio/test_models.py": "every audio language model, on stand-ins",
    "mnn_llm/audio/test_pipeline.py": "whole commands with audio language models",
    "mnn_llm/test_decoder.py": "graph, export and session against numpy",
    "mnn_llm/test_large_readers.py": "models too large for CI",
    "mnn_llm/test_reader_contract.py": "the contract of models that read",
    "profile/test_worst_case.py": "what useless drafts cost, with plan, guard and controller together",
    "scripted/test_contract.py": "the plugin's contracts",
    "scripted/test_scripted.py": "the plugin, which is one job",
    "transcripts/test_schema.py": "the JSON schema, which is no module",
    "whisper/test_contract.py": "the plugin's contracts",
    "whisper/test_exact_rows.py": "exactness of the real models",
}
"""Tests of more than one module, and why."""


def layers():
    """Return the layers of packages, top first, as import-linter holds them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (names,) = (one["layers"] for one in contracts if one.get("containers") == ["as2d_cli"])
    return [set(layer.split(" | ")) for layer in names]


def may_import(package):
    """Return the packages that the docstring of `package` allows: those in its sentence about imports."""
    text = " ".join((importlib.import_module(f"as2d_cli.{package}").__doc__ or "").split())
    (sentence,) = re.findall(r"[^.;]*\bmay import\b[^.;]*", text) or [""]
    named = set(re.findall(r"`([a-z_]+)`", sentence))
    if "every other package" in sentence:
        return {*PACKAGES}
    if " below " in sentence:
        highest = min((depth for depth, layer in enumerate(layers()) if layer & named), default=0)
        named |= set().union(*layers()[highest + 1 :])
    if not named and "nothing of as2d" not in sentence:
        pytest.fail(f"as2d_cli/{package}/__init__.py does not say what it may import")
    return named


def imports(package):
    """Return the other packages that the modules of `package` import."""
    names = set()
    for path in (CORE / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    parts = [name.split(".") for name in names if name.startswith("as2d_cli.")]
    return {part[1] for part in parts if part[1] in PACKAGES} - {package}


def modules(folder):
    return [path for path in folder.glob("*.py") if path.name != "__init__.py"]


def test_the_top_can_be_taken_in_at_a_glance():
    own_modules = [path.name for path in modules(CORE) if path.name != "__main__.py"]
    assert len(PACKAGES + own_modules) <= MAX_TOP


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_what_its_docstring_says_and_no_more(package):
    assert imports(package) - may_import(package) == set()


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in CORE.rglob("*.py")} - LARGE),
    ids=lambda folder: folder.relative_to(ROOT).as_posix(),
)
def test_no_folder_has_more_modules_than_can_be_kept_in_mind(folder):
    assert len(modules(folder)) <= MAX_MODULES


@pytest.mark.parametrize("name", sorted(name for name in MIRRORS if (ROOT / "tests" / name).is_dir()))
def test_each_test_file_is_named_after_the_module_it_tests(name):
    tests = ROOT / "tests" / name
    strays = []
    for path in tests.rglob("test_*.py"):
        tested = MIRRORS[name] / path.relative_to(tests).with_name(path.stem.removeprefix("test_"))
        is_named_after_it = tested.is_dir() or tested.with_suffix(".py").exists()
        place = path.relative_to(ROOT / "tests").as_posix()
        if is_named_after_it == (place in CROSS_CUTTING):
            strays.append(place)
    assert strays == [], "move them, or say in CROSS_CUTTING why they are not named after a module"


def test_every_cross_cutting_test_is_there():
    assert [place for place in CROSS_CUTTING if not (ROOT / "tests" / place).exists()] == []
