"""docs/architecture.md names modules and functions that are there, and all packages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "as2d_cli"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = {path.name for path in CORE.iterdir() if path.is_dir() and path.name != "__pycache__"}


def test_every_module_that_the_page_names_is_there():
    named = set(re.findall(rf"(?<![\w/])(?:{'|'.join(sorted(PACKAGES))})/[a-z_0-9]+", TEXT))
    assert len(named) > 30
    assert {name for name in named if not [*CORE.glob(f"{name}.py"), *CORE.glob(name)]} == set()


def test_every_name_that_the_page_gives_a_module_is_defined_there():
    """As in `batch/options.RunOptions`, and on lines of the straight line that begin with their module."""
    pairs = re.findall(r"`([a-z_]+(?:/[a-z_]+)+)\.(?!py)(\w+)`", TEXT)
    for module, rest in re.findall(r"^ *([a-z]+/[a-z_/]+) {2,}(.*)$", TEXT, re.MULTILINE):
        pairs += [(module, name) for name in re.findall(r"(?<![./\w])([A-Z]\w+|\w+(?=\(\)))(?=\(\)|:)", rest)]
    assert len(pairs) > 5
    for module, name in pairs:
        source = (CORE / f"{module}.py").read_text(encoding="utf-8")
        assert re.search(rf"\b(?:def|class) {name}\b", source), (module, name)


def test_the_picture_has_every_package_and_the_two_modules_beside_them():
    picture = TEXT.partition("## The packages\n\n```")[2].partition("```")[0]
    assert {name for name in {*PACKAGES, "api", "plugin"} if not re.search(rf"\b{name}\b", picture)} == set()


def test_every_plugin_is_introduced():
    plugins = {path.name for path in (ROOT / "plugins").glob("as2d_*")}
    assert {name for name in plugins if f"`{name}`" not in TEXT} == set()
