"""The processes of one engine: started, attached to shared memory, given threads, restarted, ended.

What they work on is the scheduler's business.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec
from as2d_cli.domain.types import Request
from as2d_cli.engine.messages import Attach, DecodeSettings, ModelRef
from as2d_cli.engine.processes import DrafterProcess, TargetProcess
from as2d_cli.engine.slots import SlotLayout, Slots
from as2d_cli.models import loader
from as2d_cli.system.spawning import uninterrupted

SLOTS = 4
"""Windows in work or handed out ahead: the drafter may run up to three windows ahead of the target."""


class Pair:
    """A target and perhaps a drafter, attached to the same slots."""

    target: TargetProcess
    target_spec: TargetSpec
    slots: Slots

    def __init__(
        self, target: ModelRef, drafter: ModelRef | None, decode: DecodeSettings, note: Callable[[str], None]
    ) -> None:
        """Describe the pair; `start` and `begin` start it. `note` takes warnings for the user."""
        self._models = (target, drafter)
        self._decode = decode
        self._note = note
        self._attach: Attach
        self._drafting_threads: int  # of the target's passes while it has drafts
        self._started: list[TargetProcess | DrafterProcess] = []
        self._memory = ExitStack()  # gives it back
        self.drafter: DrafterProcess | None = None
        """The drafter in a process of its own, until it is given up."""
        self.drafts_inside = False
        """Whether a drafter runs in the target's process."""

    def start(self) -> None:
        """Begin to load both models side by side. Raises `PluginError`."""
        target, drafter = self._models
        self.drafts_inside = drafter is not None and loader.drafts_inside(drafter.entry)
        self.target = TargetProcess(target, self._decode, drafter if self.drafts_inside else None)
        self._started.append(self.target)
        self._drafting_threads = self.target.decode_threads
        if drafter is not None and not self.drafts_inside:
            self.drafter = DrafterProcess(drafter, target, self._note)
            self._started.append(self.drafter)

    def begin(self) -> None:
        """Let both models begin once they are loaded.

        Raises `ModelError` or `PluginError` if the target cannot be had; `close` ends what has been started.
        A drafter that cannot be had is noted and done without.
        """
        loaded = self.target.await_ready()
        self.target_spec = loaded.spec
        if loaded.without_drafter is not None:
            self._note(f"going on without the drafter: {loaded.without_drafter.with_hint}")
            self.drafts_inside = False
        drafter_spec = self.drafter.await_spec(self.target_spec) if self.drafter else None
        if drafter_spec is None:
            self.drafter = None
        self._attach_processes(drafter_spec)

    def _attach_processes(self, drafter: DrafterSpec | None) -> None:
        features, languages = (drafter.features, drafter.languages) if drafter else (None, None)
        with uninterrupted():  # half-made memory could not be given back
            self.slots = Slots(SlotLayout(SLOTS, self.target_spec.features, features))
            self._memory.callback(self.slots.close)
            self._memory.callback(self.slots.unlink)
        self._attach = Attach(self.slots.name, self.slots.layout, languages)
        self.target.worker.send(self._attach)
        if self.drafter is not None:
            self.drafter.attach(self._attach)

    def close(self, *, at_once: bool = False) -> None:
        """Stop the processes and free the memory; safe to call twice, and before `start`."""
        with uninterrupted():  # what is half stopped could not be stopped any more
            for process in self._started:
                process.worker.kill() if at_once else process.worker.stop()
            self._started.clear()
            self.drafter = None
            self._memory.close()

    @property
    def is_running(self) -> bool:
        """Whether it was started and not closed."""
        return bool(self._started)

    def can_draft(self, request: Request) -> bool:
        """Tell whether to ask for a draft of this request now."""
        return self.drafts_inside or (self.drafter is not None and self.drafter.takes(request))

    def handle_drafter(self, drafter: DrafterProcess) -> bool:
        """Take the drafter's next message; tell whether it has just begun again after a death."""
        was_attached = drafter.is_attached
        if not drafter.handle_message(self._attach):
            self.drafter = None
            return False
        return drafter.is_attached and not was_attached

    def replace_target(self) -> str:
        """Start a dead target again; return how it ended. Raises `ModelError` if it dies every time."""
        return self.target.replace_dead(self._attach)

    def restart_target(self, decode_threads: int | None = None) -> None:
        """Load the target anew, with other threads for its passes if they are given. Its work is lost.

        Raises `ModelError` or `PluginError` if it cannot be loaded.
        """
        self.target.restart(self._attach, decode_threads)

    def share_threads(self, decode_threads: int | None) -> None:
        """Run the target's passes on so many threads (None: all) while it has drafts.

        Nothing may be in work. Raises as `restart_target`.
        """
        self._drafting_threads = decode_threads or self.target.threads
        self.fit_threads(with_drafts=True)

    def fit_threads(self, *, with_drafts: bool) -> bool:
        """Give the target's passes the threads for a window with drafts, or all of them for one without.

        Return whether the target was restarted for that and has lost its work. Raises as `restart_target`.
        """
        threads = self._drafting_threads if with_drafts else self.target.threads
        if threads == self.target.decode_threads:
            return False
        self.restart_target(threads)
        return True

    def drop_drafter(self) -> None:
        """Go on without the drafter, with all threads, and free its memory. Nothing may be in work."""
        self.drafts_inside = False
        if self.drafter is not None:
            self.drafter.worker.kill()
            self.drafter = None
            self.share_threads(None)
