"""docs/algorithm.md gives the constants that the code has, and names modules that are there."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import as2d_cli

TEXT = (Path(__file__).parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([a-z_.]+)` \| `([A-Z_]+)` \| (.+) \|$", TEXT, re.MULTILINE)
PACKAGES = sorted(package.name for package in pkgutil.iter_modules(as2d_cli.__path__) if package.ispkg)


def module(name):
    """Return the module that the document calls `name`: of the core, or with its package."""
    package = "as2d_cli" if "." in name else "as2d_cli.decoding"
    return importlib.import_module(f"{package}.{name}")


@pytest.mark.parametrize(("name", "constant", "value"), ROWS)
def test_a_constant_has_the_value_that_the_page_gives(name, constant, value):
    assert getattr(module(name), constant) == ast.literal_eval(value)


def test_every_module_that_the_page_names_with_its_package_exists():
    named = set(re.findall(rf"`((?:{'|'.join(PACKAGES)})\.[a-z_.]+)`", TEXT))
    assert len(named) > 10
    for name in named:
        module(name)
