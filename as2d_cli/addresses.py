"""Files that are not on this machine: `s3://bucket/talk.wav` and whatever else fsspec can reach.

Such an address goes through the program as the path that Python makes of it, `s3:/bucket/talk.wav`: stem,
parent and place below a folder are had from it like any other's. Here it becomes an address again. An object
store shows an object when all of it is there, so that a single put is atomic.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+]+):/+(?P<rest>.*)", re.DOTALL)
_BLOCK_BYTES = 4 << 20
"""What is read, and held, of a file at a time."""
_READ_ONLY = frozenset({"http", "https"})


def address(path: str | Path) -> str | None:
    """Return the address that a path stands for, None for one on this machine.

    >>> address(Path("s3://bucket/a.wav")), address(Path("/a.wav"))
    ('s3://bucket/a.wav', None)
    """
    found = _ADDRESS.fullmatch(str(path))
    return f"{found['scheme']}://{found['rest']}" if found else None


def located(text: str) -> Path:
    """Return the path of what was given as a text; `file://` is this machine."""
    return Path(text.removeprefix("file://"))


def absolute(path: Path) -> str:
    """Return a name that is the same wherever it is called from; links stay."""
    return address(path) or os.path.abspath(path)  # noqa: PTH100


def exists(path: Path) -> bool:
    """Tell whether something is there, were it a link to nothing. Raises `OSError` if nobody can say."""
    where = address(path)
    if where is None:
        return os.path.lexists(path)
    with _reached(where) as (system, name):
        return bool(system.exists(name))


def copy(where: str, write: Callable[[bytes], object]) -> None:
    """Give `write` what a file holds, piece by piece. Raises `OSError`."""
    with _reached(where) as (system, name), system.open(name, "rb", block_size=_BLOCK_BYTES) as file:
        while piece := file.read(_BLOCK_BYTES):
            write(piece)


def size_and_time(where: str) -> tuple[int, int | None] | None:
    """Return size in bytes and time of the last change in ns of a file, None if that is not told.

    Raises `OSError`.
    """
    with _reached(where) as (system, name):
        found = system.info(name)
        if found.get("type") != "file" or found.get("size") is None:
            return None
        changed = next((found[key] for key in ("LastModified", "mtime", "created") if found.get(key)), None)
        seconds = changed.timestamp() if isinstance(changed, datetime) else changed
        return int(found["size"]), int(seconds * 1e9) if isinstance(seconds, int | float) else None


def put(where: str, content: bytes) -> None:
    """Write a file as a whole. Raises `OSError`."""
    if reason := read_only(where):
        raise OSError(reason)
    with _reached(where) as (system, name):
        system.pipe_file(name, content)


def read_only(where: str) -> str | None:
    """Return why nothing can be written there, as far as the address tells."""
    scheme = where.partition("://")[0]
    return f"{scheme} is for reading only" if scheme in _READ_ONLY else None


def reach(where: str) -> None:
    """Make sure that a store answers. Raises `OSError`."""
    with _reached(where) as (system, name):
        system.exists(name)


def files_in(where: str) -> list[Path] | None:
    """Return all files in and below a folder, or that match a pattern, in order; None for a single file.

    Raises `OSError`.
    """
    scheme = where.partition("://")[0]
    if scheme in _READ_ONLY:  # pages have no folders
        return None
    with _reached(where) as (system, name):
        if "*" in name:
            found = system.glob(name)
        elif system.isdir(name):
            found = system.find(name)
        else:
            return None
        return [Path(f"{scheme}://{one.lstrip('/')}") for one in sorted(found)]


def listed(where: str) -> frozenset[Path]:
    """Return what lies directly in a folder, nothing if there is no such folder. Raises `OSError`."""
    scheme = where.partition("://")[0]
    try:
        with _reached(where) as (system, name):
            return frozenset(Path(f"{scheme}://{one.lstrip('/')}") for one in system.ls(name, detail=False))
    except FileNotFoundError:
        return frozenset()


@contextmanager
def _reached(where: str) -> Iterator[tuple[Any, str]]:
    """Give fsspec's file system for an address, and the name in it. What goes wrong raises `OSError`."""
    try:
        import fsspec

        # listings that are kept would not show what others have written since
        yield fsspec.core.url_to_fs(where, use_listings_cache=False)
    except ImportError as error:
        raise OSError(f"{error}; pip install 'as2d[ray]' brings fsspec and s3fs") from error
    except OSError:
        raise
    except Exception as error:  # every store has errors of its own
        raise OSError(str(error) or type(error).__name__) from error
