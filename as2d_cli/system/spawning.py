"""Starts processes that a Ctrl-C at the terminal does not reach, and that do not run the main script again.

The terminal sends SIGINT to all processes of the command at once. The main process decides what it means; a
process that is still importing would answer it with a traceback. The same holds for the other signals that
ask for an end, as long as a process is being started.

multiprocessing imports the main script in every process that it spawns, in case the script defines what is
to run there. Ours never does; left alone, a script of a few lines that calls this package would start
itself over and over, and a prompt has no script to import.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType, ModuleType
from typing import TypeAlias

from as2d_cli.domain.errors import RequestError
from as2d_cli.system.signals import STOPS

_STARTING = threading.Lock()
_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "as2d"
_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None


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
    """Hold back the signals that ask for an end until the block is done; processes started in it see none.

    Blocking the signals is for the processes, which inherit that. Here it is not enough: the system then
    gives a signal to another thread, and Python runs the handler in this one all the same.
    """
    with _unhandled(), _blocked():
        yield


@contextmanager
def _unhandled() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # where no handler ever runs
        yield
        return
    held: list[int] = []
    before: dict[signal.Signals, _Handler] = {
        number: signal.signal(number, lambda number, frame: held.append(number)) for number in sorted(STOPS)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for one in dict.fromkeys(held):
            signal.raise_signal(one)


@contextmanager
def _blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start(process: SpawnProcess) -> None:
    """Start `process` with `STOPS` blocked in it; the main process gets one that comes meanwhile.

    The process calls `follow_parent` first of all. Raises `RequestError` if the current folder, in which it
    would begin, is gone.
    """
    try:
        Path.cwd()
    except OSError as error:
        raise RequestError(
            f"the current folder: {error.strerror or error}", "go to another one, as with cd"
        ) from error
    with _STARTING, _away_from_here():
        with uninterrupted():  # the tracker of shared memory, too, must live on
            resource_tracker.ensure_running()  # now: its start unblocks signals
        with uninterrupted(), _being_a_parent():
            _start_without_main(process)


def follow_parent() -> None:
    """Leave Ctrl-C to the process that started this one, and end when that one ends, even if it is killed.

    A thread waits for that: the main one may be at work, or hang, for as long as it likes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    if os.environ.get(_SAFE_PATH) == _OURS:  # what a plugin starts is its own affair
        del os.environ[_SAFE_PATH]
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_after, args=(parent.join,), daemon=True).start()


def _end_after(event: Callable[[], None]) -> None:
    with suppress(OSError):  # its file was closed by whatever goes wrong here
        event()
    os._exit(1)


def _start_without_main(process: SpawnProcess) -> None:
    """Start `process` while an empty module stands in for the main one."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _away_from_here() -> Iterator[None]:
    """Have new processes take no module from the current folder: a stranger's recordings may lie there.

    Python is started by `python -c`, which looks there first. That of 3.10 cannot be told not to.
    """
    if os.environ.get(_SAFE_PATH):
        yield
        return
    os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]


@contextmanager
def _being_a_parent() -> Iterator[None]:
    """Let a daemonic process, as those of a pool are, start one. Ours do not need it to end them."""
    here = multiprocessing.current_process()
    is_daemon = here.daemon
    if is_daemon:
        here.daemon = False
    try:
        yield
    finally:
        if is_daemon:
            here.daemon = True
