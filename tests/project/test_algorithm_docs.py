"""What docs/algorithm.md says is what the code has."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from typing import get_args

import pytest

import as2d_cli
from as2d_cli import decoding
from as2d_cli.bench.baselines.serial import SERIAL_MODES
from as2d_cli.decoding import AlignMode, DraftState

TEXT = (Path(__file__).parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
EXPLAINED = TEXT.partition("## Constants")[0]
ROWS = re.findall(r"^\| `([a-z_.]+)` \| `([A-Z_]+)` \| (.+) \|$", TEXT, re.MULTILINE)
CORE = sorted(module.name for module in pkgutil.iter_modules(decoding.__path__))
PACKAGES = sorted(package.name for package in pkgutil.iter_modules(as2d_cli.__path__) if package.ispkg)
FULLY_TOLD = [
    *(name for name in CORE if name != "stream"),
    *("profile.plan", "profile.guard", "profile.choice"),
    *("bench.baselines.serial", "bench.baselines.coupled"),
]
"""Modules all of whose numbers are in the table; those of `stream` are a layout."""
MARKS = {"END", "EMPTY", "WHOLE_DRAFT", "_BUCKETS", "_NEVER", "_PROMPT", "_END_ID", "_WRONG_ID", "_FIRST_ID"}
"""Constants that are a mark or made of others."""


def module(name):
    """Return the module that the document calls `name`: of the core, or with its package."""
    package = "as2d_cli" if "." in name else "as2d_cli.decoding"
    return importlib.import_module(f"{package}.{name}")


def numbers(name):
    """Names of the constants of a module that are numbers, or rows of numbers."""
    statements = ast.parse(Path(module(name).__file__).read_text(encoding="utf-8")).body
    names = {
        node.id
        for statement in statements
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and node.id.isupper()
    }
    values = {key: getattr(module(name), key) for key in names - MARKS}
    rows = {key: value if isinstance(value, tuple) else (value,) for key, value in values.items()}
    return {key for key, row in rows.items() if all(isinstance(number, int | float) for number in row)}


@pytest.mark.parametrize(("name", "constant", "value"), ROWS)
def test_a_constant_has_the_value_that_is_told(name, constant, value):
    assert getattr(module(name), constant) == ast.literal_eval(value)


@pytest.mark.parametrize("name", FULLY_TOLD)
def test_every_number_of_a_module_is_told(name):
    assert numbers(name) == {constant for where, constant, _ in ROWS if where == name}


def test_every_constant_that_the_text_names_is_in_the_table():
    named = set(re.findall(r"`(?:[a-z_]+\.)?(_?[A-Z]{4,}|_?[A-Z]+_[A-Z_]+)`", TEXT)) - MARKS
    assert len(named) > 40
    assert named <= {constant for _, constant, _ in ROWS}


def test_every_module_that_the_text_names_with_its_package_exists():
    named = set(re.findall(rf"`((?:{'|'.join(PACKAGES)})\.[a-z_.]+)`", TEXT))
    assert len(named) > 10
    for name in named:
        module(name)


def test_every_module_of_the_core_and_every_mode_and_state_is_explained():
    for name in set(CORE) - {"protocols", "byte_tokens"}:
        assert re.search(rf"`{name}(\.[a-z_]+)?`", EXPLAINED), name
    for name in (*get_args(AlignMode), *SERIAL_MODES):
        assert f"`{name}`" in EXPLAINED, name
    for state in DraftState:
        assert state.name.lower() in EXPLAINED, state


def test_what_decides_whether_to_draft_is_explained():
    for name in ("profile.plan", "profile.choice", "profile.guard", "profile.measure_pair", "engine.measure"):
        assert f"`{name}`" in EXPLAINED, name
