"""The user's configuration file: options that neither flag nor environment sets.

# config.toml: the long names of the options, dashes or underscores
model = "whisper-base"
output-format = ["srt", "json"]
threads = 4
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from as2d_cli.domain.errors import RegistryError, RequestError
from as2d_cli.system.paths import config_root, expanded
from as2d_cli.system.toml import Table, read_toml

Value: TypeAlias = str | int | bool


def config_path() -> Path | None:
    """Return where the file is looked for: `$AS2D_CONFIG`, else the user's configuration folder.

    Nowhere (None) if `AS2D_CONFIG` is set to nothing. The file need not exist. Raises `RequestError` for a
    home folder that there is not.
    """
    given = os.environ.get("AS2D_CONFIG")
    if given is not None:
        return expanded(given) if given else None
    return config_root() / "config.toml"


def read_config(kinds: Mapping[str, type[Value]]) -> dict[str, Value]:
    """Return what the file says of the options in `kinds` (name with underscores -> kind of its value).

    A list of texts is joined by commas. Raises `RequestError` naming file and key for an unknown key or a
    value of another kind, and for a file named by `AS2D_CONFIG` that is not there.
    """
    path = config_path()
    if path is None or not ("AS2D_CONFIG" in os.environ or path.exists()):
        return {}
    try:
        table = read_toml(path)
        table = Table(path, "", {name.replace("-", "_"): value for name, value in table.values.items()})
        table.allow(*kinds)
        return {name: _value(table, name, kind) for name, kind in kinds.items() if name in table.values}
    except RegistryError as error:
        raise RequestError(error.message, error.hint) from error


def _value(table: Table, name: str, kind: type[Value]) -> Value:
    if kind is str and isinstance(table.values[name], list):
        return ",".join(table.texts(name))
    return table.required(name, kind)
