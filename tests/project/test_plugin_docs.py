"""docs/plugins.md keeps up with the code."""

import re
from inspect import signature
from pathlib import Path

import as2d_cli
from as2d_cli import testing
from as2d_cli.models import hookspecs
from as2d_cli.models.discovery import HOOKS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
FIXTURE = (ROOT / "tests" / "fixtures" / "as2d-phrases" / "as2d_phrases.py").read_text(encoding="utf-8")


def test_the_page_names_every_hook_with_its_arguments_and_every_public_name():
    for hook in HOOKS:
        arguments = ", ".join(signature(getattr(hookspecs, hook)).parameters)
        assert f"`{hook}({arguments})`" in PAGE
    public = set(as2d_cli.__all__) - {"__version__"} | {one for one in testing.__all__ if "Contract" in one}
    assert {name for name in public if f"`{name}`" not in PAGE} == set()


def test_the_drafter_of_the_page_is_the_one_that_is_installed_and_used_by_a_test():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert [block in FIXTURE for block in blocks] == [True, True, True, False, False]
    for block in blocks:
        compile(block, "docs/plugins.md", "exec")
