"""Connects to a Ray cluster, or begins one here and ends it again. Ray is to keep quiet, and to itself."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from as2d_cli.device import usable_cpus
from as2d_cli.errors import PluginError
from as2d_cli.printable import printable

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # else every start is told to Ray's makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",  # else SIGTERM shows where it met native code
}


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Give Ray's module, connected to the cluster at `address`; None: to one that lasts as long as the block.

    A connection that the calling program has already is used and kept. Raises `PluginError` if Ray is not
    installed, or the cluster cannot be reached.
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
    # what happens to engines is told by us; Ray prints it to stdout, log_to_driver or not
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
        signal.signal(signal.SIGTERM, before)
    if came:
        signal.raise_signal(signal.SIGTERM)


def _init(ray: Any, address: str | None) -> None:  # noqa: ANN401 - a module
    here = {"num_cpus": usable_cpus(), "include_dashboard": False}
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            **(here if address is None else {}),
        )
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        where = printable(address) if address else "on this machine"
        raise PluginError(
            f"the Ray cluster {where} cannot be reached: {str(error).splitlines()[0]}",
            "--address is that of its head, as HOST:PORT, or auto",
        ) from error
