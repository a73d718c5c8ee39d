"""Opens paths that may be no regular files: pipes that nobody writes into, endless devices, folders.

Where anything but a regular file can only be damage, in the cache and among the parts of a model, nothing
else is opened. A pipe is read where somebody may mean it, as the shell does with `<(command)`.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 1 << 28
"""More than any list, registry or JSON file holds: what goes on beyond that may have no end."""
_PATIENCE_S = 10.0
"""How long a pipe may stay without anybody who has it open to write."""
_LOOK_S = 0.02
_PIECE_BYTES = 1 << 20


def open_file_only(path: Path) -> BinaryIO:
    """Open a file to be read. Raises `OSError`, also for whatever is no file, and never waits for it."""
    file = open_at_once(path)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "is a pipe or a device", str(path))


def read_file_only(path: Path) -> bytes:
    """Return what a small file holds. Raises `OSError` as `open_file_only`, and if it is not small."""
    with open_file_only(path) as file:
        return read_small(file)


def read_any(path: Path) -> bytes:
    """Return what a small file, a pipe or a device gives until its end. Raises `OSError` if there is none."""
    with open_at_once(path) as file:
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            return _joined(pieces(file))
        os.set_blocking(file.fileno(), True)  # a terminal may be typed at
        return read_small(file)


def read_small(file: BinaryIO) -> bytes:
    """Return what can still be read. Raises `OSError` if it is more than `MOST_BYTES`."""
    return _joined(iter(partial(file.read, _PIECE_BYTES), b""))


def pieces(pipe: BinaryIO) -> Iterator[bytes]:
    """Yield what is written into a pipe from `open_at_once` until nobody has it open to write any more.

    Whoever has it open is waited for, however long it takes; that somebody opens it, only for a while.
    Raises `OSError`.
    """
    descriptor, patience_ends = pipe.fileno(), time.monotonic() + _PATIENCE_S
    news = select.poll()
    news.register(descriptor, select.POLLIN)
    begun = False
    while True:
        try:
            piece = os.read(descriptor, _PIECE_BYTES)
        except BlockingIOError:  # a writer is there and has nothing to say yet
            begun = True
            news.poll()
            continue
        if piece:
            begun = True
            yield piece
        elif begun:
            return
        elif news.poll(0):  # a writer was there; what it may have written since that look is to be read
            begun = True
        elif time.monotonic() > patience_ends:
            raise OSError(errno.ETIMEDOUT, f"a pipe that nothing was written to in {_PATIENCE_S:.0f} s")
        else:
            time.sleep(_LOOK_S)


def open_at_once(path: Path) -> BinaryIO:
    """Open whatever it is, without waiting; a pipe is then to be read by `pieces`. Raises `OSError`."""
    return open(path, "rb", opener=_without_waiting)  # Path.open takes no opener


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _joined(parts: Iterable[bytes]) -> bytes:
    whole = bytearray()
    for part in parts:
        whole += part
        if len(whole) > MOST_BYTES:
            raise OSError(errno.EFBIG, "is too large, or has no end")
    return bytes(whole)
