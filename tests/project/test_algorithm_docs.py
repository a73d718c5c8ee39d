"""What docs/algorithm.md says is what the code has."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from typing import get_args

import pytest

from as2d_cli import decoding
from as2d_cli.bench.baselines.serial import SERIAL_MODES
from as2d_cli.decoding import AlignMode, DraftState

TEXT = (Path(__file__).parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([a-z_.]+)` \| `([A-Z_]+)` \| (.+) \|$", TEXT, re.MULTILINE)
MODULES = sorted(one.name for one in pkgutil.iter_modules(decoding.__path__))
MARKS = {"END", "EMPTY", "WHOLE_DRAFT", "_BUCKETS", "_NEVER", "_PROMPT", "_END_ID", "_WRONG_ID", "_FIRST_ID"}
"""Constants that are a mark or made of others; those of `stream` are a layout."""


def module(name):
    package = "as2d_cli.decoding" if name in MODULES else "as2d_cli"
    return importlib.import_module(f"{package}.{name}")


def numbers(name):
    """Names of the constants of a module that are numbers, or rows of numbers."""
    statements = ast.parse(Path(module(name).__file__).read_text(encoding="utf-8")).body
    names = {
        target.id
        for one in statements
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    }
    values = {key: getattr(module(name), key) for key in names - MARKS}
    rows = {key: value if isinstance(value, tuple) else (value,) for key, value in values.items()}
    return {key for key, row in rows.items() if all(isinstance(one, int | float) for one in row)}


@pytest.mark.parametrize(("name", "constant", "value"), ROWS)
def test_a_constant_has_the_value_that_is_told(name, constant, value):
    assert getattr(module(name), constant) == ast.literal_eval(value)


@pytest.mark.parametrize("name", [*(name for name in MODULES if name != "stream"), "budget", "guard"])
def test_every_number_of_a_module_is_told(name):
    assert numbers(name) <= {constant for where, constant, _ in ROWS if where == name}


def test_every_constant_that_the_text_names_is_in_the_table():
    named = set(re.findall(r"`(?:[a-z_]+\.)?(_?[A-Z]{4,}|_?[A-Z]+_[A-Z_]+)`", TEXT)) - MARKS
    assert len(named) > 40
    assert named <= {constant for _, constant, _ in ROWS}


def test_every_module_of_the_core_and_every_mode_and_state_is_explained():
    explained = TEXT.partition("## Constants")[0]
    for name in set(MODULES) - {"protocols", "byte_tokens"}:
        assert f"`{name}`" in explained, name
    for name in (*get_args(AlignMode), *SERIAL_MODES):
        assert f"`{name}`" in explained, name
    for state in DraftState:
        assert state.name.lower() in explained, state
