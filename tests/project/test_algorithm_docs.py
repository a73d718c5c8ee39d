"""The values in docs/algorithm.md are those of the code."""

import ast
import importlib
import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([a-z_.]+)` \| `([A-Z_]+)` \| (.+) \|$", TEXT, re.MULTILINE)


@pytest.mark.parametrize(("module", "constant", "value"), ROWS)
def test_a_constant_has_the_value_that_the_page_gives(module, constant, value):
    assert getattr(importlib.import_module(f"as2d_cli.{module}"), constant) == ast.literal_eval(value)
