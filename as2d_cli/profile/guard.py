"""Watches, while a run goes on, whether drafts still pay; stops them when they do not, and tries again later.

A profile knows what drafts cost, not how good they will be on the audio at hand, nor what else the machine
will have to do. So what windows take is held against what they would have taken plainly.
"""

from __future__ import annotations

from as2d_cli.domain.types import DecodeStats
from as2d_cli.profile.plan import PlainCosts

FIRST_PAUSE = 128
"""Windows without drafts after the first loss, about an hour; each further loss makes it longer. A
stop touches two windows, a trial one: this keeps a drafter of no use below 2 % of a run's windows."""
_LONGER = 2
_MAX_PAUSE = 512
_PATIENCE = 16
"""Windows after which a trial whose window has failed is made again."""
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
        self._is_trying = False  # one window, whose outcome decides
        self.paused_windows = 0

    @property
    def is_paused(self) -> bool:
        """Whether windows go without drafts."""
        return self._left > 0

    def should_draft(self) -> bool:
        """Tell whether the window that is handed out next is to be drafted."""
        if not self.is_paused:
            return True
        if self._left == 1:
            self._left, self._is_trying = _PATIENCE, True
            return True
        self._left -= 1
        self.paused_windows += 1
        return False

    def observe(self, stats: DecodeStats, *, drafted: bool) -> bool:
        """Note what a window took; tell whether drafting ends with it, as the last few gained nothing."""
        plain_s = self._plain.window_s(stats)
        if not drafted:
            self._pace += (stats.wall_s / plain_s - self._pace) * (1 - _MEMORY)
            return False
        if self._left and not self._is_trying:  # was in work when the pause began
            return False
        self._left, self._is_trying = 0, False
        self._spent = _MEMORY * self._spent + stats.wall_s
        self._expected = _MEMORY * self._expected + plain_s * self._pace
        if self._spent <= self._expected:
            return False
        self._left = self._pause
        self._pause = min(_LONGER * self._pause, _MAX_PAUSE)
        self._spent = self._expected = 0.0
        return True
