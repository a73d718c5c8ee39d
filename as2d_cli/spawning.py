"""Starts processes that a Ctrl-C at the terminal does not reach.

The terminal sends SIGINT to all processes of the command at once. What it means is the main process's
to decide; a process that is still importing would answer it with a traceback.
"""

from __future__ import annotations

import signal
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess


def start(process: SpawnProcess) -> None:
    """Start `process` with SIGINT blocked in it; the main process gets one that comes meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        process.start()
        return
    resource_tracker.ensure_running()  # now: its own start would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
