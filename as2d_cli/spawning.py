"""Starts processes that a Ctrl-C at the terminal does not reach, and that do not run the main script anew.

The terminal sends SIGINT to all processes of the command at once. What it means is the main process's
to decide; a process that is still importing would answer it with a traceback.

multiprocessing imports the main script in every process that it spawns, in case that what is to run there is
defined in it. Ours never is; left alone, a script of a few lines that calls this package would start itself
over and over, and a prompt has no script to import.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess
from types import ModuleType


def is_alive(process: int) -> bool:
    """Tell whether a process of this number lives."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back a Ctrl-C until the block is done; processes started in it never see one.

    Blocking the signal is for the processes, which inherit that. Here it is not enough: the system then
    gives the signal to another thread, and Python runs the handler in this one all the same.
    """
    with _unhandled(), _blocked():
        yield


@contextmanager
def _unhandled() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # where no handler ever runs
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if held:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _blocked() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start(process: SpawnProcess) -> None:
    """Start `process` with SIGINT blocked in it; the main process gets one that comes meanwhile."""
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # now: its own start would unblock SIGINT
    with uninterrupted():
        _start_without_main(process)


def _start_without_main(process: SpawnProcess) -> None:
    """Start `process` while an empty module stands in for the main one."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main
