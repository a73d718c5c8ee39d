"""Asynchronous but coupled drafting (as in AMUSD): the drafter follows the target's committed text.

Two streams in shared memory: one carries drafts, one the text to draft after. Whenever the target's
text leaves the draft, or overtakes it, the target's end opens a new epoch in both, and the drafter
starts again after the whole text so far. Between restarts draft and text are the same, so nothing
else needs to be said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from as2d_cli.bench.baselines.coupled import CoupledDrafter
from as2d_cli.decoding.protocols import END
from as2d_cli.decoding.stream import DraftReader, DraftState, DraftStream
from as2d_cli.decoding.verify import count_accepted

COUPLED = "async-coupled"
"""Name of the mode."""


@dataclass(frozen=True, slots=True)
class Channel:
    """What both ends share: the streams, with room for a whole text each, and the target's vocabulary."""

    prefixes: DraftStream
    drafts: DraftStream
    end_id: int
    vocab_size: int


class FollowedDraft:
    """The target's end of both streams: draft and alignment of one window in one.

    Position i of the draft is position i of the text, as in `SerialDraft`. The first epoch is
    `epoch`; every target pass may use up one more.
    """

    def __init__(self, channel: Channel, epoch: int) -> None:
        """Let the drafter begin after an empty text."""
        self.run = 0
        """Draft tokens just before the cursor that were right, in a row."""
        self._channel = channel
        self._committed: list[int] = []
        self._left = False  # the text has left the draft, and no other will come
        self._cancelled = False
        self._begin(epoch)

    @property
    def epoch(self) -> int:
        """Number of the present draft; the next window must begin with a greater one."""
        return self._epoch

    @property
    def complete(self) -> bool:
        """True when no token beyond the last snapshot will come while the target is at work."""
        return self._reader.complete

    def snapshot(self) -> int:
        """Return the number of tokens, those of the text that was drafted after included."""
        self._count = self._reader.snapshot()
        return self.seen

    def ids(self, start: int, stop: int) -> list[int]:
        """Copy of the tokens in [start, stop)."""
        return [*self._committed[: self._base], *self._reader.ids(0, self._count)][start:stop]

    def cancel(self) -> None:
        """Ask the drafter to stop for good; what it has published stays usable."""
        self._cancelled = True
        self._reader.cancel()

    @property
    def seen(self) -> int:
        """Tokens in the last snapshot."""
        return self._base + self._count

    @property
    def cursor(self) -> int | None:
        """Index of the first token that is not committed; None if there is no draft after it."""
        return None if self._left else len(self._committed)

    def feed(self, ids: Sequence[int], *, complete: bool) -> None:
        """Nothing to do: the draft is known here."""

    def observe(self, tokens: Sequence[int]) -> None:
        """Take newly committed tokens; start the drafter again if it is not where they are."""
        seen = self.snapshot()  # a fresh one: the drafter may have come this far during the target's pass
        ahead = [] if self._left else self.ids(len(self._committed), seen)
        right = count_accepted(tokens, ahead[: len(tokens)])
        self._committed += tokens
        if right == len(tokens):
            self.run += right
        elif self._cancelled:
            self.run, self._left = 0, True
        else:
            self.run = self.run + right if right == len(ahead) else 0
            self._begin(self._epoch + 1)

    def _begin(self, epoch: int) -> None:
        """Begin a new draft after the text so far; the drafter looks for it only once the text is there."""
        channel = self._channel
        self._epoch, self._base, self._count = epoch, len(self._committed), 0
        channel.prefixes.reset(epoch)
        channel.prefixes.writer(epoch).publish(self._committed)
        channel.drafts.reset(epoch)
        self._reader: DraftReader = channel.drafts.reader(epoch, channel.vocab_size)


class Follower:
    """The drafter's end of both streams, for one window.

    A process calls `turn` until `over`, pausing when it returns False. On a virtual clock `work` and
    `publish` are called when a pass begins and when it ends.
    """

    def __init__(self, channel: Channel, drafter: CoupledDrafter) -> None:
        """Take up the present epoch; the target's end of the window must exist already."""
        self._channel, self._drafter = channel, drafter
        self._outcome: int | None = None
        self._start()

    @property
    def over(self) -> bool:
        """True when the target's end wants no more drafts of this window."""
        return self._writer.cancelled and self._channel.drafts.epoch == self._epoch

    def turn(self) -> bool:
        """Draft and publish one token. False if there is nothing to do until the text goes another way."""
        worked = self.work()
        if worked:
            self.publish()
        return worked

    def work(self) -> bool:
        """Go where the target's text is and draft one token; keep it for `publish`."""
        if self._channel.drafts.epoch != self._epoch:
            self._start()
        if self._state.finished:
            return False
        if self._writer.cancelled:
            self._finish(DraftState.CANCELLED)
            return False
        token = None if self._writer.full else self._drafter.step()
        if token is None:
            self._finish(DraftState.CAPPED)
            return False
        self._outcome = self._channel.end_id if token.id == END else token.id
        return True

    def publish(self) -> None:
        """Publish what `work` drafted, unless another draft has been asked for since."""
        token, self._outcome = self._outcome, None
        if token is None or self._writer.cancelled:
            return
        self._writer.publish([token])
        if token == self._channel.end_id:
            self._finish(DraftState.ENDED)

    def _start(self) -> None:
        """Begin the draft of the newest epoch.

        Should the target's end open yet another one meanwhile, the prefix read may be any mixture;
        the draft after it then belongs to an epoch that nobody reads.
        """
        self._epoch = self._channel.drafts.epoch
        self._writer = self._channel.drafts.writer(self._epoch)
        self._state = DraftState.DRAFTING
        prefix = self._channel.prefixes.reader(self._epoch, self._channel.vocab_size)
        self._drafter.sync(prefix.ids(0, prefix.snapshot()))

    def _finish(self, state: DraftState) -> None:
        self._state = state
        self._writer.finish(state)
