"""docs/plugins.md keeps up with the code."""

import re
from inspect import signature
from pathlib import Path

import pytest

from as2d_cli import plugin, testing
from as2d_cli.models import hookspecs
from as2d_cli.models.discovery import HOOKS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
FIXTURE = (ROOT / "tests" / "fixtures" / "as2d-phrases" / "as2d_phrases.py").read_text(encoding="utf-8")


def test_the_page_names_every_hook_with_its_arguments():
    for hook in HOOKS:
        arguments = ", ".join(signature(getattr(hookspecs, hook)).parameters)
        assert f"`{hook}({arguments})`" in PAGE


def test_the_page_lists_the_public_names_and_no_others():
    table = PAGE.partition("| names in `as2d_cli.plugin` | |")[2]
    listed = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]
    assert sorted(listed) == sorted(plugin.__all__)
    assert {name for name in testing.__all__ if "Contract" in name and f"`{name}`" not in PAGE} == set()


def test_every_public_name_is_there_and_in_a_group_of_the_docstring():
    groups = set(re.findall(r"\w+", plugin.__doc__))
    for name in plugin.__all__:
        assert getattr(plugin, name) is not None
        assert name in groups or name.endswith("Error")
    with pytest.raises(AttributeError, match="no attribute 'hookimp'"):
        _ = plugin.hookimp


def test_the_drafter_of_the_page_is_the_one_that_is_installed_and_used_by_a_test():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert [block in FIXTURE for block in blocks] == [True, True, True, False, False, False]
    for block in blocks:
        compile(block, "docs/plugins.md", "exec")
