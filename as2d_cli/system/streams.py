"""Standard streams: keeps other files from taking the number of a closed stream, and redirects stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def fill_closed() -> None:
    """Open the null device for streams that are closed: no pipe and no output may get their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number: this one
        if getattr(sys, name) is None:  # closed when Python began
            stream = os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)


@contextmanager
def stdout_to(descriptor: int) -> Iterator[None]:
    """Have what is printed to file descriptor 1 go to another one, also by native code."""
    import ctypes  # here: the command line must start fast

    sys.stdout.flush()
    try:
        saved = os.dup(1)
    except OSError:  # a program may have closed it: there is nothing to keep clean
        yield
        return
    os.dup2(descriptor, 1)
    try:
        yield
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # C has a buffer of its own, which may be flushed at exit only
        with suppress(OSError):  # a plugin may have closed every file
            os.dup2(saved, 1)
            os.close(saved)


@contextmanager
def stdout_to_nobody() -> Iterator[None]:
    """Have what is printed to file descriptor 1 be lost, also by native code, which may be chatty."""
    with Path(os.devnull).open("wb") as nowhere, stdout_to(nowhere.fileno()):
        yield
