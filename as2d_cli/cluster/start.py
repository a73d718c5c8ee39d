"""Connects to a Ray cluster, or starts one on this machine and ends it again, and keeps Ray quiet."""

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

_RAY_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # else every start is told to Ray's makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",  # else SIGTERM shows where it met native code
}

_AUTO = "auto"
_HINT = "--address is that of its head, as HOST:PORT, or auto"
_CONNECT_PATIENCE_S = 10.0
"""How long a cluster may take to answer at all."""


@contextmanager
def connect(address: str | None) -> Iterator[Any]:
    """Yield Ray's module, connected to the cluster at `address`; None: to one that ends with the block.

    A connection that the calling program has already is used and kept. Raises `PluginError` if Ray is not
    installed or the cluster cannot be reached, `RequestError` for what cannot be the address of a cluster.
    """
    os.environ.update(_RAY_SETTINGS)
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
    # we report what happens to engines; Ray prints it to stdout whatever log_to_driver says
    with suppress(AttributeError):  # private, so a version may lack it
        ray._private.worker._worker_logs_enabled = False
    try:
        yield ray
    finally:
        with _own_signals():
            ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep this program's handler of SIGTERM, which Ray replaces at its start and at its end.

    With Ray's, SIGTERM would raise `SystemExit`, print native messages, and be ignored afterwards.
    """
    if threading.current_thread() is not threading.main_thread():  # then Ray leaves it alone, too
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    was_terminated = False
    try:
        yield
    except SystemExit as error:
        was_terminated = error.code == signal.SIGTERM
        if not was_terminated:
            raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
    if was_terminated:
        signal.raise_signal(signal.SIGTERM)


def _init(ray: Any, address: str | None) -> None:  # noqa: ANN401 - a module
    if address not in (None, _AUTO):
        _check_address(address)
    own_cluster = {"num_cpus": usable_cpus(), "include_dashboard": False}
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            **(own_cluster if address is None else {}),
        )
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise _unreachable(address or "on this machine", summary_line(error)) from error


def _check_address(address: str) -> None:
    """Raise `PluginError` if nobody answers there, which Ray takes minutes to find out.

    Raises `RequestError` for what cannot be an address.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise RequestError(f"{printable(address)} is no address of a Ray cluster", _HINT)
    why = why_unreachable(address)
    if why is not None:
        raise _unreachable(address, why)


def why_unreachable(address: str) -> str | None:
    """Return why nobody answers at `HOST:PORT`, None if somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_PATIENCE_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        return summary_line(error)
    return None


def _unreachable(where: str, why: str) -> PluginError:
    return PluginError(f"the Ray cluster {printable(where)} cannot be reached: {why}", _HINT)


def summary_line(error: Exception) -> str:
    """Return the line that matters of an error of Ray or the system: a traceback's last, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    is_traceback = any("Traceback (most" in line or line.startswith('File "') for line in lines)
    return (lines or [type(error).__name__])[-1 if is_traceback else 0]
