"""The target's process as the main one sees it: loaded before anything else, started again when it dies."""

from __future__ import annotations

from dataclasses import replace

from as2d_cli.domain.errors import ModelError
from as2d_cli.engine.messages import Attach, DecodeSettings, Failed, ModelRef, TargetReady
from as2d_cli.engine.worker_handle import MAX_DEATHS, WorkerHandle
from as2d_cli.engine.worker_main import run_target


class TargetProcess:
    """The target's process; the worker in it changes, what is asked of it does not."""

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
