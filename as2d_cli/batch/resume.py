"""Remembers which outputs were made from what, so that a rerun does only what is missing or out of date.

    <cache>/done/<2 digits>/<digest of the output's path>.json    one record per output file

A record is put down just before its output is, and names the output's digest: whatever kills the run, an
output with a fitting record is whole. Without records (the cache may be deleted) outputs that exist are
somebody's and are left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import BinaryIO, TypeAlias

from as2d_cli.batch.inputs import Input
from as2d_cli.system.addresses import absolute, address
from as2d_cli.system.atomic_files import PART, sha256_of, write_whole
from as2d_cli.system.json_files import read_json
from as2d_cli.system.paths import cache_root
from as2d_cli.system.remote_files import copy, exists, size_and_time
from as2d_cli.system.spawning import is_alive

Stamp: TypeAlias = tuple[int, int | None]
"""Size in bytes, and time of the last change in nanoseconds where there is one."""


class State(Enum):
    """What an output that a run is asked for is found to be."""

    MISSING = "missing"
    COMPLETE = "complete"
    """Made by us as it is asked for now, from what the input still holds."""
    STALE = "stale"
    """Made by us in another way, or from what the input held before; nobody has touched it since."""
    CHANGED = "changed since as2d wrote it"
    FOREIGN = "not known to be made by as2d"


@dataclass(frozen=True, slots=True)
class Content:
    """What an input holds. Equal size and time spare computing the digest; a stream has no time."""

    size: int
    time_ns: int | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Record:
    """How an output was made."""

    output: str
    source: str
    """The input, as `source_key` names it."""
    content: Content
    recipe: str
    """Digest of everything else that decides what the output says."""
    sha256: str
    """Of the output."""
    replaced: str | None = None
    """Digest of our own output that was there before, and still is if the run was killed in between."""


def record_of(output: Path) -> Record | None:
    """Return how an output was made, if that is known."""
    try:
        fields = read_json(_file_of(output))
        if fields.pop("check", None) != _check_of(fields):
            return None
        return Record(**{**fields, "content": Content(**fields["content"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # an unreadable record is no record
        return None


def remember(record: Record) -> None:
    """Write an output's record. Raises `OSError`."""
    file = _file_of(Path(record.output))
    file.parent.mkdir(parents=True, exist_ok=True)
    fields = asdict(record)
    text = json.dumps(fields | {"check": _check_of(fields)})
    write_whole(file, text.encode(), staging=_root())  # one folder to look through for what is left of it


def _check_of(fields: Mapping[str, object]) -> int:
    """Return what tells that a record is as it was written: a changed bit could have a file made again."""
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def owner(output: Path) -> str | None:
    """Return the key of the input that an output which is there was made from, if that is known."""
    record = record_of(output)
    try:
        return record.source if record and exists(output) else None
    except OSError:  # what cannot be looked for is taken to be there still
        return record.source if record else None


def state_of(output: Path, source: Input, recipe: str) -> State:
    """Return the state of an output. An input that cannot be read makes it stale."""
    if not exists(output):
        return State.MISSING
    record = record_of(output)
    if record is None or record.source != source_key(source):
        return State.FOREIGN
    try:
        digest = digest_of(output)
    except OSError:
        return State.CHANGED
    if digest == record.sha256:
        return State.COMPLETE if record.recipe == recipe and _holds(source, record.content) else State.STALE
    return State.STALE if digest == record.replaced else State.CHANGED


def stamp_of(source: Input) -> Stamp | None:
    """Return what tells whether an input changes; None for one that can be read only once."""
    if source.stream is not None:
        return source.stream.seek(0, os.SEEK_END), None
    try:
        if (where := address(source.path)) is not None:
            return size_and_time(where)
        status = source.path.stat()
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns) if source.path.is_file() else None


def content_of(source: Input, stamp: Stamp | None, sha256: str | None = None) -> Content | None:
    """Return what an input holds, or None of one that can be read only once, which has no `stamp`.

    If it is not what it held when it had this `stamp`, the content has no digest: no input ever holds it.
    `sha256` is that of what was read of it after the stamp was taken, if it is known.
    """
    if stamp is None or sha256 is not None:
        return Content(*stamp, sha256) if stamp and sha256 else None
    try:
        if stamp_of(source) == stamp:
            return Content(*stamp, digest_of(source.source))
    except OSError:  # gone meanwhile
        pass
    return Content(stamp[0], None, "")


def digest_of(file: Path | BinaryIO) -> str:
    """Return the SHA-256 of a file, wherever it lies. Raises `OSError`, also for a pipe or a device."""
    if not isinstance(file, Path):
        file.seek(0)
        digest = sha256_of(file)
        file.seek(0)
        return digest
    if (where := address(file)) is not None:
        with tempfile.TemporaryFile() as here:
            return copy(where, here)
    return sha256_of(file)


def recipe_of(parts: Mapping[str, object]) -> str:
    """Return a digest of the model and of the options that decide what an output says."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def source_key(source: Input) -> str:
    """Return the name of an input that is the same wherever it is called from."""
    return source.path.name if source.stream else absolute(source.path)


def sweep(folder: Path) -> None:
    """Remove what runs that were killed were just writing into `folder`."""
    try:
        parts = [(entry, PART.fullmatch(entry.name)) for entry in os.scandir(folder)]
    except OSError:
        return
    for entry, part in parts:
        if part and not is_alive(int(part.group(1))):
            with suppress(OSError):
                Path(entry.path).unlink()


def sweep_records() -> None:
    """Remove records that runs which were killed were just writing."""
    sweep(_root())


def _holds(source: Input, content: Content) -> bool:
    """Tell whether an input still holds `content`."""
    try:
        if source.stream is not None:
            return digest_of(source.stream) == content.sha256
        stamp = stamp_of(source)
        if stamp is None or stamp[0] != content.size:
            return False
        return stamp[1] == content.time_ns is not None or digest_of(source.path) == content.sha256
    except OSError:
        return False


def _root() -> Path:
    return cache_root() / "done"


def _file_of(output: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(absolute(output))).hexdigest()
    return _root() / digest[:2] / f"{digest[2:]}.json"
