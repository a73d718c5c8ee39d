"""What the exit code of a command means, and the signals that end one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn

from as2d_cli.domain.errors import As2dError, ModelError, PluginError, RegistryError, RequestError
from as2d_cli.system.signals import STOPS


class ExitCode(IntEnum):
    """Exit codes of `as2d`; the last ones are what shells show for the signals."""

    OK = 0
    SOME_FAILED = 1
    """An input failed, or was not confirmed by --compare; all others were done."""
    USAGE = 2
    UNAVAILABLE = 3
    """A model, plugin or device cannot be used."""
    HUNG_UP = 129
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


_came: list[int] = []
"""Signals that asked for an end. The exception does not tell: native code raises another one in its place."""


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP end the block in order at first, and at once the second time.

    What is ignored from the start stays so: `nohup`, and Ctrl-C in a script's background, are meant.
    Outside of the block, where nobody tells them apart, they do what they do to any program.
    """
    before = {number: signal.getsignal(number) for number in STOPS}
    heeded = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
    try:
        for number in heeded:
            signal.signal(number, _stop)
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)


def _stop(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    _came.append(number)
    raise KeyboardInterrupt


def code_of_stop() -> ExitCode:
    """Return the code of a command that was stopped by a signal."""
    return ExitCode(128 + _came[-1]) if _came else ExitCode.INTERRUPTED


def exit_code(error: As2dError) -> ExitCode:
    """Return the code of a command that ends with `error`."""
    if isinstance(error, RequestError):
        return ExitCode.USAGE
    if isinstance(error, ModelError | PluginError | RegistryError):
        return ExitCode.UNAVAILABLE
    return ExitCode.SOME_FAILED
