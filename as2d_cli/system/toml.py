"""Reads TOML tables strictly: every error names file, table and key, and what is allowed there.

It knows nothing of models; `models.registry` gives the tables their meaning.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TypeVar

from as2d_cli.domain.errors import RegistryError
from as2d_cli.system.special_files import read_any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

_KINDS: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a registry file. `name` is its dotted path, empty for the top of the file."""

    file: Path
    name: str
    values: Mapping[str, object]

    def fail(self, key: str | None, problem: str, hint: str | None = None) -> NoReturn:
        """Raise `RegistryError` for `key`, or for the table itself."""
        where = f"[{self.name}]" if self.name else "top level"
        at = f"{self.file}: {where}" + (f": {key}" if key is not None else "")
        raise RegistryError(f"{at}: {problem}", hint)

    def allow(self, *keys: str) -> None:
        """Raise `RegistryError` if the table holds any key but `keys`: typos are the commonest fault."""
        for key in self.values:
            if key not in keys:
                self.fail(key, "unknown key", suggestion(key, keys))

    def optional(self, key: str, kind: type[T]) -> T | None:
        """Return the value of `key`, which must be exactly of `kind`, or None where it is not given."""
        if key not in self.values:
            return None
        value = self.values[key]
        if type(value) is not kind:  # not isinstance: true is an int in Python
            self.fail(key, f"expected {_KINDS[kind]}, found {describe(value)}")
        return value

    def required(self, key: str, kind: type[T]) -> T:
        """Return the value of `key`, which must be given."""
        value = self.optional(key, kind)
        if value is None:
            self.fail(key, "missing key", f"give {_KINDS[kind]}")
        return value

    def choice(self, key: str, allowed: Collection[str]) -> str:
        """Return the text `key`, which must be one of `allowed`."""
        value = self.required(key, str)
        if value not in allowed:
            self.fail(key, f"{value!r} is not possible here", suggestion(value, allowed))
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list of texts `key`, empty where it is not given."""
        values = self.optional(key, list) or []
        for value in values:
            if not isinstance(value, str):
                self.fail(key, f"expected a list of texts, found {describe(value)} in it")
        return tuple(values)

    def table(self, key: str) -> Table:
        """Return the table `key`, empty where it is not given."""
        values = self.optional(key, dict) or {}
        return Table(self.file, self._inner(key), values)

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """Yield name and table of each table within the table `key`."""
        outer = self.table(key)
        for name in outer.values:
            yield name, Table(self.file, outer._inner(name), outer.required(name, dict))

    def table_list(self, key: str) -> Iterator[Table]:
        """Yield the tables of the list `key`, which must not be empty."""
        values = self.required(key, list)
        if not values:
            self.fail(key, "the list is empty")
        for position, value in enumerate(values):
            if not isinstance(value, dict):
                self.fail(key, f"expected a list of tables, found {describe(value)} in it")
            yield Table(self.file, f"{self._inner(key)}[{position}]", value)

    def _inner(self, key: str) -> str:
        quoted = key if key.replace("-", "").replace("_", "").isalnum() else f'"{key}"'
        return f"{self.name}.{quoted}" if self.name else quoted


def read_toml(file: Path) -> Table:
    """Read a TOML file. Raises `RegistryError` if it cannot be read or is not TOML."""
    try:
        return Table(file, "", tomllib.loads(read_any(file).decode("utf-8-sig")))
    except OSError as error:
        raise RegistryError(f"{file}: cannot be read: {error.strerror or error}") from error
    except RecursionError as error:  # more brackets within brackets than Python follows
        raise RegistryError(f"{file}: not valid TOML: nested too deep") from error
    except ValueError as error:  # both bad TOML and bad UTF-8
        raise RegistryError(f"{file}: not valid TOML: {error}") from error


def describe(value: object) -> str:
    """Return a short wording of a wrong value: its kind, and the value where it is a plain one."""
    kind = _KINDS.get(type(value), f"a {type(value).__name__}")
    return kind if isinstance(value, list | dict) else f"{kind} ({value!r})"


def suggestion(word: str, allowed: Collection[str], listed_by: str | None = None) -> str:
    """Return a hint: the first of `allowed` that ends so, or the nearest, and all, or what lists them.

    >>> suggestion("plugn", ["role", "plugin"])
    "did you mean 'plugin'? allowed: plugin, role"
    >>> suggestion("base", ["tiny", "whisper-base"])
    "did you mean 'whisper-base'? allowed: tiny, whisper-base"
    >>> suggestion("large-v3", ["whisper-large-v3", "distil-large-v3"], "as2d models list")
    "did you mean 'whisper-large-v3'? see: as2d models list"
    """
    near = [one for one in allowed if one.endswith(f"-{word}")] or get_close_matches(word, allowed, n=1)
    listed = f"see: {listed_by}" if listed_by else f"allowed: {', '.join(sorted(allowed))}"
    return f"did you mean {near[0]!r}? {listed}" if near else listed
