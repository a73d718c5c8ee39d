"""Atomic writes: a file is written whole or not at all, whatever ends the process meanwhile. Also digests."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from as2d_cli.domain.errors import OutputError, reason
from as2d_cli.system.addresses import address
from as2d_cli.system.printable import printable
from as2d_cli.system.special_files import open_file_only, read_file_only

PART = re.compile(r"\.as2d-(\d+)-[0-9a-f]+\.part")
"""The name of a file that is being written, with the number of the process that does so."""
_CHUNK_BYTES = 1 << 20


def write_whole(path: Path, content: bytes, *, staging: Path | None = None, lasting: bool = False) -> None:
    """Write a file: `path` holds all of `content` or is as it was. Raises `OSError`.

    What is no file stays: who may write to `/dev` could replace `/dev/null` by a page of HTML.
    It is made in the folder `staging`, on the same disk; by default beside `path`. A `lasting` file is there
    after a loss of power, too, for which the disk is waited for.
    """
    _check_replaceable(path)
    # Not tempfile: its files are private to the user, and an output is to have the usual mode.
    temporary = (staging or path.parent) / f".as2d-{os.getpid()}-{secrets.token_hex(4)}.part"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomic(path: Path, text: str) -> None:
    """Write `text` as UTF-8 without BOM, newlines as they are; `path` holds all of it or is as it was.

    Folders that are missing are made. Raises OutputError.
    """
    content = text.encode("utf-8", "ignore")  # without lone surrogates, which no UTF-8 can hold
    try:
        if (where := address(path)) is not None:
            from as2d_cli.system.remote_files import put  # asyncio comes with it, and takes its time

            put(where, content)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content, lasting=True)
    except (OSError, ValueError) as error:
        raise OutputError(
            f"{printable(path)}: cannot be written: {reason(error)}",
            "is there space, and may you write there? -o chooses another folder",
        ) from error


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file, as `write_whole`, for `read_sealed`. Raises `OSError`."""
    write_whole(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_sealed(path: Path) -> bytes:
    """Return what `write_sealed` wrote. Raises `OSError`, `ValueError` if it is not as it was written."""
    digest, _, content = read_file_only(path).partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise ValueError(f"{path} is damaged")
    return content


def _check_replaceable(path: Path) -> None:
    """Raise `OSError` for a pipe or a device, also behind a link; a folder is refused by the system."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EEXIST, "is a pipe or a device", str(path))


def sha256_of(file: Path | BinaryIO, progress: Callable[[int], None] | None = None) -> str:
    """Return the hex digest of a file, of an open one from where it is; `progress` is told the bytes done.

    Raises `OSError`, also for a pipe or a device.
    """
    if isinstance(file, Path):
        with open_file_only(file) as opened:
            return sha256_of(opened, progress)
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
        if progress:
            progress(file.tell())
    return digest.hexdigest()
