"""Lists, reads and writes remote files: those far away in object stores and on the web, through fsspec.

`addresses` has their names. A store shows an object once all of it is there, so a single put is atomic.
"""

from __future__ import annotations

import asyncio
import errno
import glob
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from as2d_cli.system.addresses import WEB, address, without_secrets

_Result = TypeVar("_Result")

_BLOCK_BYTES = 4 << 20
"""What is read, and held, of a file at a time."""
_WEB_PATIENCE_S, _WEB_INFO_S = 20.0, 15.0
"""For a web server to begin, and to go on, with a file; to tell of one."""
_STORE_PATIENCE_S = 60.0
"""For a store to tell of a file, or to take one; left alone, its client may try for many minutes."""
_PAUSES_S = (1.0, 5.0)
"""Before the web is asked again after what may pass. S3 and Google's storage are, by their clients."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Answers of a web server that another time may not give; the same as curl's --retry has."""
_WITH_BUCKETS = frozenset({"s3", "gs"})
_SILENT = logging.NullHandler()
UNKNOWN_SIZE = -1


class _PassingError(OSError):
    """May be gone when it is tried again."""


class _SilenceError(OSError):
    """Nothing came for long."""


def exists(path: Path) -> bool:
    """Tell whether something is there, even a link to nothing. Raises `OSError` if nobody can say."""
    where = address(path)
    if where is None:
        return os.path.lexists(path)
    with _reached(where) as (system, name):
        return bool(system.exists(name))


def copy(where: str, file: BinaryIO) -> str:
    """Write what a file holds into an empty one, piece by piece; return its SHA-256. Raises `OSError`."""
    return _tried(lambda: _copied(where, file))


def _copied(where: str, file: BinaryIO) -> str:
    # The web in one go: many servers cannot begin in the middle, or do not tell the size. That given here
    # is not used; it spares asking for it, which a signature for reading does not allow.
    how = {"block_size": 0, "size": 1} if _scheme(where) in WEB else {"block_size": _BLOCK_BYTES}
    file.seek(0)
    file.truncate()
    digest = hashlib.sha256()
    try:
        with _reached(where) as (system, name), system.open(name, "rb", **how) as far:
            while piece := far.read(_BLOCK_BYTES):
                file.write(piece)
                digest.update(piece)
    except _SilenceError as error:
        raise _PassingError(str(error)) if file.tell() else error from error
    return digest.hexdigest()


def head(where: str, size: int) -> bytes:
    """Return the first bytes of a file, at most `size`. Raises `OSError`."""
    with _reached(where) as (system, name), system.open(name, "rb", cache_type="none") as far:
        return bytes(far.read(size))


def size_and_time(where: str) -> tuple[int, int | None] | None:
    """Return size in bytes (`UNKNOWN_SIZE` if that is not told) and time of the last change in ns of a file.

    None if there is no file. Raises `OSError`.
    """
    found = _tried(lambda: _told(where))
    if found.get("type") != "file":
        return None
    size = found.get("size")
    return UNKNOWN_SIZE if size is None else int(size), _changed_ns(found)


def _told(where: str) -> Mapping[str, Any]:
    with _reached(where) as (system, name):
        found: Mapping[str, Any] = system.info(name, **_patience(where, system))
    return found


def _patience(where: str, system: Any) -> dict[str, float]:  # noqa: ANN401 - fsspec has no types
    """Return how fsspec is told not to wait for ever for one answer, where it can be."""
    if not system.async_impl:
        return {}
    return {"timeout": _WEB_INFO_S if _scheme(where) in WEB else _STORE_PATIENCE_S}


def _tried(do: Callable[[], _Result]) -> _Result:
    """Return what `do` does, at the third time at the latest, if what goes wrong may pass."""
    for pause_s in _PAUSES_S:
        try:
            return do()
        except _PassingError:
            time.sleep(pause_s)
    return do()


def _changed_ns(found: Mapping[str, Any]) -> int | None:
    names = ("LastModified", "mtime", "created", "Last-Modified")
    changed = next((found[name] for name in names if found.get(name)), None)
    if isinstance(changed, str):
        try:
            changed = parsedate_to_datetime(changed)
        except ValueError:
            return None
    seconds = changed.timestamp() if isinstance(changed, datetime) else changed
    return int(seconds * 1e9) if isinstance(seconds, int | float) else None


def put(where: str, content: bytes) -> None:
    """Write a file as a whole. Raises `OSError`."""
    if reason := read_only(where):
        raise OSError(reason)
    with _reached(where) as (system, name):
        system.pipe_file(name, content, **_patience(where, system))


def read_only(where: str) -> str | None:
    """Return why nothing can be written there, as far as the address tells."""
    scheme = _scheme(where)
    return f"{scheme} is for reading only" if scheme in WEB else None


def reach(where: str) -> None:
    """Make sure that a store answers, and has the bucket. Raises `OSError`."""
    with _reached(where) as (system, name):
        if _scheme(where) in _WITH_BUCKETS:
            with suppress(PermissionError):  # somebody may be let into a part only
                system.info(name.partition("/")[0], **_patience(where, system))
        system.exists(name)


def files_in(where: str) -> list[Path] | None:
    """Return all files in and below a folder in order, None if it is none. Raises `OSError`."""
    if _scheme(where) in WEB:  # pages have no folders
        return None
    try:  # not `isdir`: where nobody can say it says no
        is_folder = _told(where).get("type") == "directory"
    except FileNotFoundError:
        return None
    if not is_folder:
        return None
    with _reached(where) as (system, name):
        return _paths(where, name, system.find(name))


def matching(where: str) -> list[Path] | None:
    """Return the files that a pattern stands for in order, None if it is none. Raises `OSError`."""
    if _scheme(where) in WEB or not glob.has_magic(where):
        return None
    with _reached(where) as (system, name):
        return None if system.exists(name) else _paths(where, name, system.glob(name))


def listed(where: str) -> frozenset[Path]:
    """Return what lies directly in a folder, nothing if there is no such folder. Raises `OSError`."""
    try:
        with _reached(where) as (system, name):
            return frozenset(_paths(where, name, system.ls(name, detail=False)))
    except FileNotFoundError:
        return frozenset()


def _paths(where: str, name: str, names: list[str]) -> list[Path]:
    name = name.rstrip("/")
    # with the host, which some stores leave out of their names
    before = where.removesuffix(name) if where.endswith(name) else f"{_scheme(where)}://"
    return [Path(before + one) for one in sorted(names)]


def _scheme(where: str) -> str:
    return where.partition("://")[0]


@contextmanager
def _reached(where: str) -> Iterator[tuple[Any, str]]:
    """Give fsspec's file system for an address, and the name in it. What goes wrong raises `OSError`."""
    try:
        import fsspec

        # not `url_to_fs`: it takes two colons in a name for a chain of stores
        options = _options(where)
        kind = fsspec.get_filesystem_class(_scheme(where))
        options |= kind._get_kwargs_from_urls(where)
        # listings that are kept would not show what others have written since
        yield kind(use_listings_cache=False, **options), kind._strip_protocol(where)
    except ImportError as error:
        is_ours = _scheme(where) in WEB | _WITH_BUCKETS
        brought = "; pip install 'as2d[ray]' brings what is needed" if is_ours else ""
        raise OSError(f"{error}{brought}") from error
    except FileNotFoundError as error:
        if _may_pass(error.__cause__, where):  # whatever keeps the web from telling of a file, it is this
            raise _PassingError(_reason(error)) from error
        raise FileNotFoundError(errno.ENOENT, f"not found: {_reason(error)}") from error
    except (TimeoutError, asyncio.TimeoutError) as error:  # one of one kind from Python 3.11 on
        raise _SilenceError("the server does not answer") from error
    except Exception as error:  # every store has errors of its own
        kind = _PassingError if _may_pass(error, where) else OSError
        raise kind(_reason(error)) from error


def _may_pass(error: BaseException | None, where: str) -> bool:
    """Tell whether asking the web again may help: busy or broken servers, lines that were cut."""
    if _scheme(where) not in WEB:
        return False
    import aiohttp

    if isinstance(error, aiohttp.ClientResponseError):
        return error.status in _PASSING
    cut = (aiohttp.ClientPayloadError, aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
    return isinstance(error, cut) and not isinstance(error, aiohttp.ClientConnectorError)  # nobody there


def _options(where: str) -> dict[str, Any]:
    """Return what fsspec is to be told of a scheme."""
    if _scheme(where) == "gs":
        # else it asks a second service of each bucket, and in some leaves objects open to go on with
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        logging.getLogger("gcsfs").addHandler(_SILENT)  # what it gives up it raises, and tells with traceback
    if _scheme(where) not in WEB:
        return {}
    import aiohttp

    # by default a file has to be here within five minutes, however long it is
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_WEB_PATIENCE_S, sock_read=_WEB_PATIENCE_S)
    return {"client_kwargs": {"timeout": timeout, "trust_env": True}}  # proxies, ~/.netrc


def _reason(error: Exception) -> str:
    """Return why a store refuses, without its address, which may hold secrets."""
    status = getattr(error, "status", None)
    if isinstance(status, int) and status:  # of a web server
        return f"the server answers {status} {getattr(error, 'message', '').partition(chr(10))[0]}".rstrip()
    said = "" if status == 0 else getattr(error, "strerror", None) or str(error)
    if not said or ("/" in said and " " not in said):  # an address alone: nobody knows what is the matter
        said = f"{type(error).__name__} {said}"
    return without_secrets(" ".join(said.split()))
