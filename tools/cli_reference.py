"""Writes the reference of the command line to standard output, from the commands themselves.

python tools/cli_reference.py > docs/cli.md
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.main import get_command

from as2d_cli.cli.app import app
from as2d_cli.cli.options.parameters import COMMANDS
from as2d_cli.cli.options.settings import setting_kinds

_HEAD = """\
# Command line

What `--help` says of every command, in one place. This file is written by `python tools/cli_reference.py`; a
test holds it against the commands. An option marked with \\* is a setting: the environment (`AS2D_<OPTION>`)
and the file that `as2d config path` names can set it, too, for all commands that have it.
"""


def main() -> None:
    """Write the head, then a section for each command."""
    sys.stdout.write(_HEAD)
    root: Any = get_command(app)
    context = typer.Context(root, info_name="as2d")
    for name in root.list_commands(context):
        for line in _section(f"as2d {name}", root.get_command(context, name), "##"):
            sys.stdout.write(f"\n{line}\n")


def _section(name: str, command: Any, heading: str) -> Iterator[str]:  # noqa: ANN401 - see cli/app.py
    yield f"{heading} {name}"
    if help_text := inspect.cleandoc(command.help or ""):
        yield _plain(help_text)
    if rows := list(_rows(name.removeprefix("as2d "), command)):
        yield "\n".join(["| option | meaning |", "|---|---|", *rows])
    for inner, one in getattr(command, "commands", {}).items():
        yield from _section(f"{name} {inner}", one, heading + "#")


def _rows(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401
    settings = setting_kinds(COMMANDS[name]) if name in COMMANDS else {}
    for one in sorted(command.params, key=lambda one: one.param_type_name != "argument"):
        if one.name == "help" or getattr(one, "hidden", False):
            continue
        mark = " \\*" if one.name in settings else ""
        yield f"| {_names(one)}{mark} | {_meaning(one)} |"


def _names(one: Any) -> str:  # noqa: ANN401
    """Return how an option is written; the short forms first, what it takes after the last."""
    if one.param_type_name == "argument":
        return f"`{one.metavar or one.name.upper()}`"
    names = sorted([*one.opts, *one.secondary_opts], key=lambda name: name.startswith("--"))
    if one.metavar and not one.is_flag:
        names[-1] += " " + one.metavar.replace("|", "\\|")
    return ", ".join(f"`{name}`" for name in names)


def _meaning(one: Any) -> str:  # noqa: ANN401
    text = _plain(one.help or "")
    if isinstance(one.default, bool) or not isinstance(one.default, str | int) or not one.show_default:
        return text
    return f"{text} [default: {one.default}]".strip()


def _plain(text: str) -> str:
    """Return text whose characters mean themselves in Markdown, in tables, too."""
    for character in "|<*":
        text = text.replace(character, f"\\{character}")
    return text


if __name__ == "__main__":
    main()
