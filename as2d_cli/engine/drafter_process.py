"""The drafter's process as the main one sees it: it may come late, die, hang or be given up."""

from __future__ import annotations

from collections.abc import Callable

from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec
from as2d_cli.domain.types import Request
from as2d_cli.engine.messages import LOADING, Attach, DrafterReady, Failed, Job, ModelRef
from as2d_cli.engine.worker_handle import MAX_DEATHS, WorkerHandle
from as2d_cli.engine.worker_main import run_drafter
from as2d_cli.models import loader

MAX_WAITING = 8
"""Drafts asked for and not yet answered, at most: more than that the pipe may not hold."""
_LOADING_S = 30.0
"""How much longer than the target a drafter may take to load before the run goes on without it."""


class DrafterProcess:
    """The drafter's process and what is known of it; it may come and go."""

    def __init__(self, model: ModelRef, target: ModelRef, note: Callable[[str], None]) -> None:
        self._models = (model, target)
        self._note = note
        self._deaths = 0
        self._failures = 0
        self._waiting = 0  # drafts asked for and not yet reported done
        self.is_attached = False
        self.spec: DrafterSpec | None = None
        self.worker = WorkerHandle("drafter", run_drafter, *self._models)

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
        """Tell whether a draft of what is asked for should be asked for now.

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

    def hear(self, attach: Attach) -> DrafterProcess | None:
        """Take the next message; return what is to be used from now on: itself or nothing."""
        message = self.worker.receive()
        if message is None:
            return self if self._restart(f"the drafter's process {self.worker.how_it_ended()}") else None
        if isinstance(message, DrafterReady):
            self.attach(attach)
        elif isinstance(message, Failed) and message.id == LOADING:
            return self if self._restart(f"the drafter cannot be loaded: {message.error.with_hint}") else None
        elif isinstance(message, Failed):
            self._waiting -= 1
            self._failures += 1
            if self._failures == 1:
                self._note(loader.failed_draft(self._models[0].entry.plugin, message.error))
        else:
            self._waiting -= 1
        return self

    def _restart(self, reason: str) -> bool:
        self.worker.kill()
        self._deaths += 1
        self.is_attached, self._waiting = False, 0
        if self._deaths >= MAX_DEATHS:
            self._note(f"{reason}; going on without it")
            return False
        self._note(f"{reason}; starting it again")
        self.worker = WorkerHandle("drafter", run_drafter, *self._models)
        return True
