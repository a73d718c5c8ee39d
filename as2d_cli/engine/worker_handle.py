"""A worker process seen from the main one: start it, talk to it, end it."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

from as2d_cli.engine.messages import Message
from as2d_cli.system.spawning import start

MAX_DEATHS = 3
"""Deaths of the drafter in all, or of the target in a row, after which it is given up."""
PATIENCE_S = 300.0
"""How long a process may be at one piece of work, where nothing else tells that it hangs."""
_STOP_S = 2.0


class WorkerHandle:
    """A spawned process and the pipe to it."""

    def __init__(self, name: str, body: Callable[..., None], *arguments: object) -> None:
        """Start `body(pipe, *arguments)` in a process of its own."""
        # spawn: MNN's thread pools do not survive a fork
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        self.pipe: Connection = pipe
        self._silent_s: float | None = None
        self.process = context.Process(
            target=body, args=(theirs, *arguments), name=f"as2d {name}", daemon=True
        )
        start(self.process)
        theirs.close()

    def receive(self, patience_s: float | None = None) -> Message | None:
        """Return the next message, waiting for it; None once the process is gone.

        A process that says nothing for `patience_s` is taken to hang, and killed; so is one whose pipe a
        plugin has written into.
        """
        try:
            if patience_s is not None and not self.pipe.poll(patience_s):
                self._silent_s = patience_s
                self.kill()
            message: Message = self.pipe.recv()
        except (EOFError, OSError):
            return None
        except Exception:  # noqa: BLE001 - what is no message can fail in any way
            self.kill()
            return None
        return message

    def send(self, message: object) -> None:
        """Send a message; that a process is gone is noticed when it is next listened to."""
        with contextlib.suppress(OSError):
            self.pipe.send(message)

    def stop(self) -> None:
        """End the process: its pipe closes, and it is killed if that does not end it soon."""
        self.pipe.close()
        self.process.join(_STOP_S)
        self.kill()

    def kill(self) -> None:
        """End the process now. Workers hold nothing that needs an orderly end."""
        self.process.kill()
        self.process.join()

    def how_it_ended(self) -> str:
        """Describe the exit of a process that is gone, for an error message."""
        if self._silent_s is not None:
            return f"did not answer for {self._silent_s:.0f} s"
        self.process.join(_STOP_S)
        code = self.process.exitcode
        if code is None:
            return "no longer answers"
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
