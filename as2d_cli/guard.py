"""Watches, while a run goes on, whether drafts still pay; stops them when they do not, and tries again later.

A profile knows what drafts cost, not how good they will be on the audio at hand, nor what else the machine
will have to do. So what windows take is held against what they would have taken plainly.
"""

from __future__ import annotations

from as2d_cli.budget import PlainCosts
from as2d_cli.types import DecodeStats

FIRST_PAUSE = 32
"""Windows without drafts after the first loss; each further loss in a row makes it longer."""
_LONGER = 4
_MAX_PAUSE = 512
_TOLERATED = 1.02
"""Time beside plain decoding's that is still taken for noise."""
_MEMORY = 0.8
"""Weight of a window beside the next one's."""


class DraftGuard:
    """Says for each window whether to ask for its draft."""

    def __init__(self, plain: PlainCosts) -> None:
        """Begin with drafts; `plain` is what the profile makes of windows without."""
        self._plain = plain
        self._pace = 1.0  # of plain windows of this run, beside what the profile says
        self._spent = self._expected = 0.0
        self._pause, self._left = FIRST_PAUSE, 0
        self.paused_windows = 0

    @property
    def is_paused(self) -> bool:
        """Whether the next window goes without a draft."""
        return self._left > 0

    def asks(self) -> bool:
        """Tell whether the window that is handed out next is to be drafted."""
        if not self.is_paused:
            return True
        self._left -= 1
        self.paused_windows += 1
        return False

    def saw(self, stats: DecodeStats, *, drafted: bool) -> None:
        """Take what a window took. A loss over the last few drafted ones ends drafting for a while."""
        plain_s = self._plain.window_s(stats)
        if not drafted:
            self._pace += (stats.wall_s / plain_s - self._pace) * (1 - _MEMORY)
            return
        if self.is_paused:  # was in work when the pause began
            return
        self._spent = _MEMORY * self._spent + stats.wall_s
        self._expected = _MEMORY * self._expected + plain_s * self._pace
        if self._spent > _TOLERATED * self._expected:
            self._left = self._pause
            self._pause = min(_LONGER * self._pause, _MAX_PAUSE)
            self._spent = self._expected = 0.0
