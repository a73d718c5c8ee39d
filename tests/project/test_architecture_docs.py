"""docs/architecture.md names what there is, and nothing else."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import as2d_cli

TEXT = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in TEXT.splitlines() if line.startswith("| `")]
FLOW = TEXT.partition("## Data flow")[2].partition("```\n")[2].partition("```")[0]
WITH_PARTS = ("bench", "cli", "testing")
"""Packages of which every module is named; those of `decoding` are in algorithm.md."""


def modules(package):
    found = pkgutil.iter_modules([*package.__path__])
    return {one.name + "/" * one.ispkg for one in found}


def named(cells):
    return {name for cell in cells for name in re.findall(r"`([a-z_0-9]+/?)`", cell)}


def test_every_module_has_a_place_and_every_place_a_module():
    first = {name for row in ROWS for name in named(row[:1])}
    assert modules(as2d_cli) - first == set()
    plugins = {name for name in first if name.startswith("as2d_")}
    assert first - modules(as2d_cli) - plugins == {"skeleton/"}, "files only"
    assert plugins == {path.name for path in (Path(__file__).parents[2] / "plugins").glob("as2d_*")}


@pytest.mark.parametrize("name", WITH_PARTS)
def test_every_module_of_a_package_is_named_with_it(name):
    rows = [row for row in ROWS if f"`{name}/`" in row[0]]
    there = modules(importlib.import_module(f"as2d_cli.{name}"))
    assert there - {part for row in rows for part in named(row)} == set()


def test_what_the_data_flow_names_is_there():
    names = re.findall(r"\b([a-z_]+)\.([A-Za-z_]+)", FLOW)
    assert len(names) >= 9
    for module, name in names:
        assert hasattr(importlib.import_module(f"as2d_cli.{module}"), name), (module, name)
