"""Runs a function in a process of its own: its memory, its chatter and its crashes stay there."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar, cast

from as2d_cli.domain.errors import As2dError
from as2d_cli.system.spawning import follow_parent, start

T = TypeVar("T")


def run_apart(name: str, body: Callable[..., T], *arguments: object) -> T:
    """Return what `body(*arguments)` returns in a new process called `name`; all must be possible to pickle.

    Raises the `As2dError` that `body` raises, and `ChildProcessError` with the cause, one line, if the
    process ends in another way than by returning.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="as2d-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        job = (body, arguments, log, sender)
        process = context.Process(target=_run_here, args=job, name=f"as2d {name}", daemon=True)
        start(process)
        sender.close()
        try:
            answer = _receive(receiver)
            process.join()
        finally:
            process.kill()  # does nothing to one that has ended
            process.join()
            receiver.close()
        if isinstance(answer, As2dError):
            raise answer
        if answer is None or process.exitcode != 0:  # native code that calls exit() has done nothing
            raise ChildProcessError(_why_it_ended(process.exitcode or 0, log))
    return cast("tuple[T]", answer)[0]


def _run_here(
    body: Callable[..., object], arguments: tuple[object, ...], log: Path, answer: Connection
) -> None:
    """Body of the process; native code writes to the descriptors, past sys.stdout."""
    follow_parent()
    with log.open("wb") as file, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # standard input is audio, or somebody else's
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        answer.send((body(*arguments),))
    except As2dError as error:
        answer.send(error)


def _receive(receiver: Connection) -> object:
    """Return what the process sent, None if it came to no end."""
    try:
        return receiver.recv()
    except (EOFError, OSError):
        return None


def _why_it_ended(exit_code: int, log: Path) -> str:
    if exit_code < 0:
        return f"it was ended by {signal.Signals(-exit_code).name}"
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    return next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {exit_code}")
