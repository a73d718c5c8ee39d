"""Virtual time: a clock that only moves when told, and drafts that are there or arrive by it."""

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


def finished_draft(ids: Sequence[int], vocab_size: int, final: DraftState = DraftState.ENDED) -> DraftReader:
    """Return a reader of a draft that was complete before decoding began."""
    stream = DraftStream(bytearray(DraftStream.bytes_needed(len(ids))), len(ids))
    stream.reset(1)
    writer = stream.writer(1)
    writer.publish(ids)
    writer.finish(final)
    return stream.reader(1, vocab_size)


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
