"""Virtual time: clocks that only move when told, and drafts that arrive by them."""

from __future__ import annotations

from collections.abc import Sequence

from as2d_cli.decoding.stream import DraftReader, DraftState, DraftStream


class VirtualClock:
    """Call it for the time in seconds; `advance` moves it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Return the current time, seconds."""
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds


class PacedReader(DraftReader):
    """A reader that first lets a simulated drafter publish whatever is due by the stream's clock.

    `schedule` holds (publish time in seconds, target id) in order; after the last one the drafter is
    in `final`, unless it was cancelled before.
    """

    def __init__(
        self,
        stream: DraftStream,
        epoch: int,
        vocab_size: int,
        schedule: Sequence[tuple[float, int]],
        final: DraftState = DraftState.ENDED,
    ) -> None:
        super().__init__(stream, epoch, vocab_size)
        self._clock = stream.clock
        self._writer = stream.writer(epoch)
        self._schedule = schedule
        self._final = final

    def snapshot(self) -> int:
        """Publish what is due, then count."""
        if not self.state.finished:
            self._publish_due()
        return super().snapshot()

    def _publish_due(self) -> None:
        if self._writer.cancelled:
            self._writer.finish(DraftState.CANCELLED)
            return
        rest = self._schedule[self._writer.count :]
        self._writer.publish([token for due_s, token in rest if due_s <= self._clock()])
        if self._writer.count == len(self._schedule):
            self._writer.finish(self._final)


class Duet:
    """Time of a target and of a drafter beside it, each slowing the other while both are at work.

    `target` and `drafter` are clocks; the drafter's shows how long it would have worked alone. Its
    work ends at `end_s` of its own time and goes `stretch` times as slowly while the target is at work.
    """

    def __init__(self, end_s: float, stretch: float = 1.0, head_start_s: float = 0.0) -> None:
        """Let the drafter begin, alone, `head_start_s` before the target's time does."""
        self.target, self.drafter = VirtualClock(), VirtualClock()
        self._end_s, self._stretch = end_s, stretch
        self.drafter.advance(head_start_s)

    @property
    def drafting(self) -> bool:
        """Whether the drafter still has work to do."""
        return self.drafter.now_s < self._end_s

    def stop_drafting(self) -> None:
        """Take the rest of its work from the drafter."""
        self._end_s = min(self._end_s, self.drafter.now_s)

    def work(self, idle_s: float, busy_s: float) -> None:
        """Let the target do what takes `idle_s` alone and `busy_s` beside the drafter.

        Where the drafter ends in between, the rest of the work goes at the idle pace.
        """
        if not self.drafting:
            self.target.advance(idle_s)
            self.drafter.advance(idle_s)
        elif (end_s := self._end_s - self.drafter.now_s) * self._stretch >= busy_s:
            self.target.advance(busy_s)
            self.drafter.advance(busy_s / self._stretch)
        else:
            alone_s = busy_s - end_s * self._stretch  # if the drafter went on
            # In this form, work that takes as long idle as busy takes exactly that long.
            self.target.advance(busy_s - alone_s * (1 - idle_s / busy_s))
            self.drafter.now_s = self._end_s + alone_s * (idle_s / busy_s)
