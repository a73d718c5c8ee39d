"""The checks that CI and a commit run, the coverage of the core, and the promises of the documents."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import as2d_cli

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


CHECKS = ["ruff format --check", "ruff check", "mypy", "lint-imports"]


def test_every_package_is_closed_to_plugins_and_to_the_decoding_core_or_open_by_name():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    closed = {one["name"]: set(one["forbidden_modules"]) for one in contracts if one["type"] == "forbidden"}
    packages = {f"as2d_cli.{module.name}" for module in pkgutil.iter_modules(as2d_cli.__path__)}
    to_plugins = closed["plugins import the public API of plugins alone"]
    assert packages - to_plugins == {"as2d_cli.plugin", "as2d_cli.testing"}
    to_decoding = closed["decoding is numpy and the domain"]
    assert packages - to_decoding == {"as2d_cli.decoding", "as2d_cli.domain"}
    plugins = {path.name for path in (ROOT / "plugins").glob("as2d_*")}
    assert plugins <= closed["the core knows no inference engine and no plugin"]


def test_tests_of_the_core_that_draw_nothing_at_random_reach_all_its_lines_and_branches(tmp_path):
    left_out = [f"--ignore={ROOT}/tests/decoding/test_{name}.py" for name in ("simulation", "lossless")]
    tests = [ROOT / "tests" / "decoding", ROOT / "tests" / "engine" / "test_inner_drafts.py", *left_out]
    pytest_ = [
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-c",
        ROOT / "pyproject.toml",
        "-m",
        "not hypothesis",
    ]
    for words in (
        ["run", "--rcfile=", "--branch", "--source=as2d_cli.decoding", *pytest_, *tests],
        ["report", f"--rcfile={ROOT / 'pyproject.toml'}", "--show-missing", "--fail-under=100"],
    ):
        run = subprocess.run(
            [sys.executable, "-m", "coverage", *words],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
            check=False,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stdout + run.stderr


def test_the_same_checks_run_before_a_commit():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"\bentry: ([^,}]+)", text) == CHECKS


def test_decisions_are_numbered_without_a_gap():
    pages = sorted((ROOT / "docs" / "decisions").iterdir())
    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for number, page in enumerate(pages, start=1):
        assert page.read_text(encoding="utf-8").startswith(f"# {number}. ")


def test_examples_in_docstrings_hold():
    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(as2d_cli.__path__, "as2d_cli.")
    ]
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 5


def test_the_shipped_registry_is_the_one_at_the_top_of_the_repository():
    shipped = Path(as2d_cli.__file__).parent / "models" / "models.toml"
    assert shipped.read_bytes() == (ROOT / "models.toml").read_bytes()


def test_ci_runs_the_test_command_of_the_readme_with_the_checks_before_the_tests():
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    (command,) = [line for line in readme if "-m venv" in line and "pytest" in line]
    *install, tests = command.split(" && ")
    steps = [*install, *(f".venv/bin/{check}" for check in CHECKS), f"exec {tests}"]
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "set -euo pipefail" in lines, "else a check that fails is passed over"
    assert lines[-len(steps) :] == steps


def test_every_link_of_the_documents_leads_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (page.name, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert links == []


def test_the_reference_of_the_command_line_is_what_the_commands_say():
    command = [sys.executable, ROOT / "tools" / "cli_reference.py"]
    written = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kept = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert kept == written, "python tools/cli_reference.py > docs/cli.md"
    for command in ("transcribe", "translate", "ask", "models pull", "profile run", "bench", "config show"):
        words = [BIN / "as2d", *command.split(), "--help"]
        shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        section = kept.partition(f"# as2d {command}\n")[2].partition("\n#")[0]
        options = {word.strip(",") for word in shown.split() if word.startswith("--")} - {"--help"}
        assert options == {word.strip("`,") for word in section.split() if word.startswith("`--")}
