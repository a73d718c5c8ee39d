"""Connects to a Ray cluster, or begins one here and ends it again. Ray is to keep quiet, and to itself."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from as2d_cli.domain.errors import PluginError, RequestError
from as2d_cli.system.device import usable_cpus
from as2d_cli.system.printable import printable

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # else every start is told to Ray's makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",  # else SIGTERM shows where it met native code
}

_AUTO = "auto"
_HINT = "--address is that of its head, as HOST:PORT, or auto"
_PATIENCE_S = 10.0
"""How long a cluster may take to answer at all."""


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Give Ray's module, connected to the cluster at `address`; None: to one that lasts as long as the block.

    A connection that the calling program has already is used and kept. Raises `PluginError` if Ray is not
    installed, or the cluster cannot be reached, `RequestError` for what cannot be one's address.
    """
    os.environ.update(_QUIET)
    try:
        import ray
    except ImportError as error:
        raise PluginError(
            "the engine ray needs the package ray, which is not installed", "pip install 'as2d[ray]'"
        ) from error
    if ray.is_initialized():
        yield ray
        return
    with _own_signals():
        _init(ray, address)
    # what happens to engines is told by us; Ray prints it to stdout, log_to_driver or not, and has no option
    with suppress(AttributeError):  # a version may do without
        ray._private.worker._worker_logs_enabled = False
    try:
        yield ray
    finally:
        with _own_signals():
            ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what SIGTERM means to this program, whatever Ray makes of it at its start and at its end.

    It would leave by `SystemExit`, its native part tell the terminal of it, and nobody heed it afterwards.
    """
    if threading.current_thread() is not threading.main_thread():  # then Ray leaves it alone, too
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    came = False
    try:
        yield
    except SystemExit as left:
        came = left.code == signal.SIGTERM
        if not came:
            raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
    if came:
        signal.raise_signal(signal.SIGTERM)


def _init(ray: Any, address: str | None) -> None:  # noqa: ANN401 - a module
    if address not in (None, _AUTO):
        _find(address)
    here = {"num_cpus": usable_cpus(), "include_dashboard": False}
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            **(here if address is None else {}),
        )
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise _unreachable(address or "on this machine", telling_line(error)) from error


def _find(address: str) -> None:
    """Raise `PluginError` if nobody answers there, which Ray takes minutes to find out.

    Raises `RequestError` for what cannot be an address.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise RequestError(f"{printable(address)} is no address of a Ray cluster", _HINT)
    why = no_answer(address)
    if why is not None:
        raise _unreachable(address, why)


def no_answer(address: str) -> str | None:
    """Return why nobody answers at `HOST:PORT`, None if somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        return telling_line(error)
    return None


def _unreachable(where: str, why: str) -> PluginError:
    return PluginError(f"the Ray cluster {printable(where)} cannot be reached: {why}", _HINT)


def telling_line(error: Exception) -> str:
    """Return the line that matters of what Ray or the system says: a traceback's last, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    is_traceback = any("Traceback (most" in line or line.startswith('File "') for line in lines)
    return (lines or [type(error).__name__])[-1 if is_traceback else 0]
