"""`as2d plugins`: which plugins are installed, and the beginning of one's own."""

from __future__ import annotations

import json
import keyword
import re
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from as2d_cli.cli.commands.catalog import group
from as2d_cli.cli.output.columns import print_table
from as2d_cli.domain.errors import OutputError, RequestError
from as2d_cli.models.discovery import PluginInfo, list_plugins
from as2d_cli.models.hookspecs import GROUP

app = group("plugins")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLACEHOLDER = "skeleton"


@app.command("list")
def list_all(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead of a table.")] = False,
) -> None:
    """List the installed plugins. None is imported, so also a broken one is listed."""
    found = list_plugins()
    if as_json:
        typer.echo(json.dumps([_record(info) for info in found], indent=2))
        return
    rows = [("NAME", "PACKAGE", "VERSION", "API", "MODELS CAN BE")]
    rows += [(info.name, info.package, info.version, _api(info), _roles(info)) for info in found]
    print_table(rows)


@app.command()
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="Name of the plugin and of its model.")
    ],
) -> None:
    """Write a new drafter, a package with tests.

    It goes to the folder as2d-NAME; the files are printed.
    """
    _check_name(name)
    folder = Path(f"as2d-{name}")
    try:
        folder.mkdir()
        for template in sorted(resources.files("as2d_cli.testing").joinpath("skeleton").iterdir(), key=str):
            if template.is_file():
                path = folder / _named(template.name, name)
                path.write_text(_named(template.read_text(encoding="utf-8"), name), encoding="utf-8")
                typer.echo(path)
    except FileExistsError as error:
        raise OutputError(f"{folder} is there already", "choose another name, or remove it") from error
    except OSError as error:
        raise OutputError(f"{error.filename}: {error.strerror or error}") from error


def _check_name(name: str) -> None:
    """Raise `RequestError` for what cannot be the name of a new plugin."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise RequestError(
            f"{name!r} cannot be the name of a plugin", "use lower-case letters, digits and _, a letter first"
        )
    taken = next((info for info in list_plugins() if info.name == name), None)
    if taken is not None or find_spec(f"as2d_{name}") is not None:
        raise RequestError(f"{taken or f'a module as2d_{name}'} is installed already", "choose another name")


def _named(text: str, name: str) -> str:
    """Put the plugin's name for the placeholder, also into names of classes."""
    return text.replace(_PLACEHOLDER, name).replace(_PLACEHOLDER.title(), name.title().replace("_", ""))


def _record(info: PluginInfo) -> dict[str, object]:
    return {
        "name": info.name,
        "module": info.module,
        "package": info.package,
        "version": info.version,
        "api": info.api,
        "usable": info.api == GROUP,
        "roles": info.roles,
        "hooks": info.hooks,
    }


def _api(info: PluginInfo) -> str:
    return info.api if info.api == GROUP else f"{info.api} (not usable)"


def _roles(info: PluginInfo) -> str:
    return "?" if info.hooks is None else ", ".join(info.roles) or "-"
