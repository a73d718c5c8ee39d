"""Watches, while a run goes on, whether drafts still pay; stops them when they do not, and tries again later.

A profile may be wrong, and knows neither how good drafts will be on the audio at hand nor what else the
machine will have to do. So a few windows go without drafts, and what drafted ones took is held against these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from math import inf, sqrt
from statistics import fmean

from as2d_cli.domain.types import DecodeStats
from as2d_cli.profile.plan import DraftPlan, PlainCosts
from as2d_cli.profile.run_costs import DraftSums, RunCosts

FIRST_PAUSE = 16
"""Windows without drafts after the first loss, which may be chance; each further loss makes it longer."""
_LONGER = 8
_MAX_PAUSE = 512
_PATIENCE = 16
"""Windows after which a trial whose window has failed is made again."""
_RECENT = 16
"""Drafted windows that are judged, at most."""
_PROBE_SHARE = 0.01
"""Share of the time that undrafted windows may cost where drafts pay, and trials where they do not."""
_MIN_GAP = 4
"""Drafted windows between two undrafted ones, at least."""
_SWITCH = 1.0
"""What other threads for one window cost, in windows: the target is loaded anew, twice."""
_NOISE = 0.04
"""By how much windows that should take the same time differ, before the run has shown it."""
_NOISE_WEIGHT = 1.0
"""Windows that it takes to show it."""
_CERTAINTY = 1.0
"""Standard errors that a mean loss must exceed to be taken for one."""
_MAX_LOSS = 1.0
"""Loss of recent windows, in windows, that ends drafts however uncertain it is."""


class DraftGuard:
    """Says for each window whether to ask for its draft. It is asked a few windows ahead of the results."""

    def __init__(self, plain: PlainCosts, *, drafting: bool = True, shares_threads: bool = False) -> None:
        """Begin with windows of both kinds; `plain` is what the profile makes of windows without drafts.

        Without `drafting` it only notes what windows take. With `shares_threads` passes have other threads
        while they have drafts, so changing is dear.
        """
        self.costs = RunCosts(plain)
        self._drafting = drafting
        self.dropped_profiles = 0
        self._switch = _SWITCH if shares_threads else 0.0
        self._opening = deque((False, False) if shares_threads else (False, True, False))
        self._drafted: deque[DecodeStats] = deque(maxlen=_RECENT)  # since drafts began, or began again
        self._since_plain = 0
        self._pause, self._left = FIRST_PAUSE, 0
        self._is_trying = False  # one window, whose outcome decides
        self._paused_windows = 0

    @property
    def is_paused(self) -> bool:
        """Whether windows go without drafts."""
        return self._left > 0

    @property
    def sums(self) -> DraftSums:
        """The run so far."""
        return replace(
            self.costs.sums(), paused_windows=self._paused_windows, dropped_profiles=self.dropped_profiles
        )

    def should_draft(self) -> bool:
        """Tell whether the window that is handed out next is to be drafted."""
        if not self._drafting:
            return False
        drafts = self._is_trial_due() if self.is_paused else self._goes_on()
        self._since_plain = self._since_plain + 1 if drafts else 0
        return drafts

    def _is_trial_due(self) -> bool:
        if self._left == 1:
            self._left, self._is_trying = _PATIENCE, True
            return True
        self._left -= 1
        self._paused_windows += 1
        return False

    def _goes_on(self) -> bool:
        """Tell whether the next window is drafted as most are, not left plain to compare with."""
        return self._opening.popleft() if self._opening else self._since_plain < self._gap()

    def _gap(self) -> float:
        """Return after how many drafted windows one goes without: the more drafts save, the more it costs."""
        if not self._drafted:
            return inf
        cost = max(0.0, 1 / (1 + self._loss()) - 1) + self._switch
        return max(_MIN_GAP, cost / _PROBE_SHARE)

    def observe(self, stats: DecodeStats, *, drafted: bool, audio_s: float) -> bool:
        """Note what a window took; tell whether drafting ends with it, as recent windows lost by it."""
        self.costs.add(stats, drafted=drafted, audio_s=audio_s)
        if self.is_paused and not (drafted and self._is_trying):  # undrafted, or in work when the pause began
            return False
        if drafted:
            self._drafted.append(stats)
        if not self._drafted or not self._loses():
            self._left, self._is_trying = 0, False
            return False
        self._begin_pause()
        return True

    def _begin_pause(self) -> None:
        """Leave out drafts for longer than the last time, and the longer the more they have cost."""
        self._left = min(max(self._pause, round(self._loss() / _PROBE_SHARE)), _MAX_PAUSE)
        self._pause = min(_LONGER * self._pause, _MAX_PAUSE)
        self._is_trying = False
        self._drafted.clear()
        self._opening.clear()

    def _compared(self) -> tuple[list[float], list[float]]:
        """Return what each recent drafted window took, and what it would have taken plainly, seconds."""
        costs = self.costs.plain()
        return [stats.wall_s for stats in self._drafted], [costs.window_s(stats) for stats in self._drafted]

    def _loss(self) -> float:
        """Return how much longer recent drafted windows took, as a share of what they would have plainly."""
        spent, plain = self._compared()
        return sum(spent) / sum(plain) - 1

    def _loses(self) -> bool:
        """Tell whether drafts cost time: surely, or much, or in the one window that tried them again."""
        loss = self._loss()
        if self._is_trying:
            return loss >= 0
        spent, plain = self._compared()
        costs, undrafted = self.costs.plain(), self.costs.recent_plain
        groups = [
            [took / alone for took, alone in zip(spent, plain, strict=True)],
            [stats.wall_s / costs.window_s(stats) for stats in undrafted],
        ]
        error = _noise(groups) * sqrt(1 / len(spent) + 1 / max(1, len(undrafted)))
        return loss > min(_CERTAINTY * error, _MAX_LOSS / len(spent))


def guard_of(plan: DraftPlan | None) -> DraftGuard | None:
    """Return a guard of a run with this plan; None if nothing was predicted that could be doubted."""
    if plan is None or plan.plain is None:
        return None
    return DraftGuard(plan.plain, drafting=plan.drafting, shares_threads=plan.decode_threads is not None)


def _noise(groups: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation within groups, with what is expected beforehand."""
    squares, weight = _NOISE_WEIGHT * _NOISE**2, _NOISE_WEIGHT
    for ratios in filter(None, groups):
        mean = fmean(ratios)
        squares += sum((ratio - mean) ** 2 for ratio in ratios)
        weight += len(ratios) - 1
    return sqrt(squares / weight)
