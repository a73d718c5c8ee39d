"""`as2d config`: what the options are set to, and by what."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Annotated

import typer
from typer.main import get_command

from as2d_cli.cli.commands.catalog import group
from as2d_cli.cli.options.config_file import Value, config_path
from as2d_cli.cli.options.parameters import COMMANDS
from as2d_cli.cli.options.settings import PREFIX, origin, setting_kinds
from as2d_cli.cli.output.columns import print_table
from as2d_cli.domain.errors import RequestError
from as2d_cli.system.paths import cache_root

app = group("config")


@dataclass(frozen=True, slots=True)
class _Setting:
    """One line of `as2d config show`."""

    name: str
    value: Value | None
    source: str


@app.command()
def show(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, not a table.")] = False,
) -> None:
    """Show every setting, its value, and what decided it."""
    settings = _settings()
    if as_json:
        typer.echo(json.dumps({one.name: asdict(one) for one in settings}, indent=2))
        return
    rows = [("NAME", "VALUE", "FROM")]
    rows += [(one.name, _text(one.value), one.source) for one in settings]
    print_table(rows)


@app.command()
def path() -> None:
    """Print where the configuration file is looked for."""
    file = config_path()
    if file is None:
        raise RequestError("AS2D_CONFIG is set to nothing, so no file is read", "unset AS2D_CONFIG")
    typer.echo(file)


def _settings() -> list[_Setting]:
    found: dict[str, _Setting] = {}
    for command, options in COMMANDS.items():
        context = get_command(import_module(f"as2d_cli.cli.commands.{command}").app).make_context(command, [])
        for name in setting_kinds(options):
            value = context.params[name]
            source = {
                "environment": f"environment {PREFIX}_{name.upper()}",
                "file": f"file {config_path()}",
            }.get(origin(context, name), "default")
            plain = value if isinstance(value, str | int | bool | None) else str(value)
            found.setdefault(name, _Setting(name, plain, source))
    chosen = "environment AS2D_CACHE_DIR" if os.environ.get("AS2D_CACHE_DIR") else "default"
    return [*found.values(), _Setting("cache_dir", str(cache_root()), chosen)]


def _text(value: Value | None) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
