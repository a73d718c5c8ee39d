"""The target's and the drafter's process as the main one sees them.

The target's is loaded before anything else and started again when it dies. The drafter's may come late,
die, hang or be given up.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection

from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Request
from as2d_cli.engine.drafter_worker import run_drafter
from as2d_cli.engine.messages import (
    LOADING,
    Attach,
    DecodeSettings,
    DrafterReady,
    Failed,
    Job,
    Message,
    ModelRef,
    TargetReady,
)
from as2d_cli.engine.target_worker import run_target
from as2d_cli.models import loader
from as2d_cli.system.spawning import start

MAX_DEATHS = 3
"""Deaths of the drafter in all, or of the target in a row, after which it is given up."""
PATIENCE_S = 300.0
"""How long a process may be at one piece of work, where nothing else tells that it hangs."""
_STOP_S = 2.0
MAX_WAITING = 8
"""Drafts asked for and not yet answered, at most: more than that the pipe may not hold."""
_LOADING_S = 30.0
"""How much longer than the target a drafter may take to load before the run goes on without it."""


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


class TargetProcess:
    """The target's process: `worker` changes with every restart, what is asked of it does not."""

    def __init__(self, model: ModelRef, settings: DecodeSettings, inner: ModelRef | None) -> None:
        """Start the process, which also runs the drafter `inner`; `await_ready` tells when it is loaded."""
        self._model, self._settings, self._inner = model, settings, inner
        self._deaths = 0
        self.worker = self._started()

    @property
    def threads(self) -> int:
        """Threads of all but its decode loop."""
        return self._model.threads

    @property
    def decode_threads(self) -> int:
        """Threads of its decode loop."""
        return self._model.decode_threads or self._model.threads

    def await_ready(self) -> TargetReady:
        """Wait until the target is loaded. Raises what loading raised, `ModelError` if the process died."""
        message = self.worker.receive()
        if isinstance(message, Failed):
            raise message.error
        if not isinstance(message, TargetReady):
            raise ModelError(
                f"the target's process {self.worker.how_it_ended()} while loading", "is memory short?"
            )
        return message

    def restart(self, attach: Attach, decode_threads: int | None = None) -> None:
        """Load it anew, with other threads if they are given. Work that it had is lost. Raises as loading."""
        if decode_threads is not None:
            self._model = replace(self._model, decode_threads=decode_threads)
        self.worker.kill()
        self.worker = self._started()
        self.await_ready()
        self.worker.send(attach)

    def replace_dead(self, attach: Attach) -> str:
        """Start it again after a death; return how it ended. Raises `ModelError` if it does so every time."""
        ended = self.worker.how_it_ended()
        self._deaths += 1
        if self._deaths >= MAX_DEATHS:
            raise ModelError(f"the target's process {ended}, {MAX_DEATHS} times in a row", "is memory short?")
        self.restart(attach)
        return ended

    def survived(self) -> None:
        """Note that it has decoded a window: only deaths in a row count."""
        self._deaths = 0

    def _started(self) -> WorkerHandle:
        return WorkerHandle("target", run_target, self._model, self._settings, self._inner)


class DrafterProcess:
    """The drafter's process and what is known of it; it may come and go."""

    def __init__(self, model: ModelRef, target: ModelRef, note: Callable[[str], None]) -> None:
        """Start the process, which drafts for `target`; `note` takes warnings for the user."""
        self._models = (model, target)
        self._note = note
        self._deaths = 0
        self._failures = 0
        self._waiting = 0  # drafts asked for and not yet reported done
        self.is_attached = False
        self.spec: DrafterSpec | None = None
        self.worker = self._started()

    @property
    def threads(self) -> int:
        """Threads of the model."""
        return self._models[0].threads

    def await_spec(self, target: TargetSpec) -> DrafterSpec | None:
        """Wait until the drafter is loaded; None if it cannot be, or cannot be given what the target can."""
        self._target_spec = target
        message = self.worker.receive(_LOADING_S)
        if isinstance(message, DrafterReady):
            reason = message.spec.features.flaw(target.features.length_s)
            if reason is None:
                self.spec = message.spec
                return message.spec
        else:
            reason = message.error.with_hint if isinstance(message, Failed) else self.worker.how_it_ended()
        self._note(f"going on without the drafter: {reason}")
        self.worker.kill()
        return None

    def attach(self, attach: Attach) -> None:
        """Let a loaded drafter begin."""
        self.worker.send(self._target_spec)
        self.worker.send(attach)
        self.is_attached = True

    def takes(self, request: Request) -> bool:
        """Tell whether to ask for a draft of this request now.

        A drafter that does not keep up, or hangs, is not sent more than its pipe surely holds.
        """
        if not self.is_attached or self._waiting >= MAX_WAITING or self.spec is None:
            return False
        if self.spec.tasks is not None and request.task not in self.spec.tasks:
            return False
        if request.task == "translate" and request.to not in self.spec.translates_to:
            return False
        languages = self.spec.languages
        return request.language is None or languages is None or request.language in languages

    def draft(self, job: Job) -> None:
        """Ask for the draft of a window."""
        self._waiting += 1
        self.worker.send(job)

    def handle_message(self, attach: Attach) -> bool:
        """Take the next message, starting the process again if it has died; False once it is given up."""
        message = self.worker.receive()
        if message is None:
            return self._restart(f"the drafter's process {self.worker.how_it_ended()}")
        if isinstance(message, DrafterReady):
            self.attach(attach)
        elif isinstance(message, Failed) and message.id == LOADING:
            return self._restart(f"the drafter cannot be loaded: {message.error.with_hint}")
        elif isinstance(message, Failed):
            self._waiting -= 1
            self._failures += 1
            if self._failures == 1:
                self._note(loader.failed_draft(self._models[0].entry.plugin, message.error))
        else:
            self._waiting -= 1
        return True

    def _restart(self, reason: str) -> bool:
        self.worker.kill()
        self._deaths += 1
        self.is_attached, self._waiting = False, 0
        if self._deaths >= MAX_DEATHS:
            self._note(f"{reason}; going on without it")
            return False
        self._note(f"{reason}; starting it again")
        self.worker = self._started()
        return True

    def _started(self) -> WorkerHandle:
        return WorkerHandle("drafter", run_drafter, *self._models)
