"""What the windows of a run took, with drafts and without, and what drafted ones would have taken plainly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from as2d_cli.domain.types import WINDOW_S, DecodeStats
from as2d_cli.profile.plan import PART, PlainCosts

RECENT = 8
"""Undrafted windows that the present costs are taken from: the machine may have been another before."""
_WHOLE_S = 0.8 * WINDOW_S
"""Audio of a window whose encoding can be compared with the profile's, which is of a whole window."""
_ENOUGH = 2
"""Undrafted windows before they say anything about a profile."""


@dataclass(frozen=True, slots=True)
class DraftSums:
    """Decoded windows of a run, with drafts and without; `+` adds."""

    plain_windows: int = 0
    plain_s: float = 0.0
    drafted_windows: int = 0
    drafted_s: float = 0.0
    without_s: float = 0.0
    """What the drafted windows would have taken plainly, by the undrafted ones."""
    paused_windows: int = 0
    """Windows decoded without drafts because these had come to cost time."""
    dropped_profiles: int = 0
    """Profiles that the run contradicted; they will be measured anew."""

    def __add__(self, other: DraftSums) -> DraftSums:
        """Field-wise sum."""
        return DraftSums(*(getattr(self, name) + getattr(other, name) for name in DraftSums.__slots__))


class RunCosts:
    """Collects what windows took; undrafted ones take over from the profile as soon as there are any."""

    def __init__(self, predicted: PlainCosts) -> None:
        """Begin with what the profile predicts."""
        self.predicted = predicted
        self._plain: list[DecodeStats] = []
        self._drafted: list[DecodeStats] = []
        self._whole: list[DecodeStats] = []  # of the undrafted ones

    def add(self, stats: DecodeStats, *, drafted: bool, audio_s: float) -> None:
        """Note what a window with so much audio took."""
        (self._drafted if drafted else self._plain).append(stats)
        if not drafted and audio_s >= _WHOLE_S:
            self._whole.append(stats)

    @property
    def windows(self) -> int:
        """How many windows were decoded."""
        return len(self._plain) + len(self._drafted)

    @property
    def recent_plain(self) -> Sequence[DecodeStats]:
        """Undrafted windows that the costs are taken from. The first, on cold models, only until the next."""
        return (self._plain[1:] or self._plain)[-RECENT:]

    def plain(self) -> PlainCosts:
        """Return what windows take without drafts now: the profile's prediction if none was seen."""
        recent = self.recent_plain
        if not recent:
            return self.predicted
        longest_s = max(stats.encode_s for stats in recent)
        encode_s = median(stats.encode_s for stats in recent if stats.encode_s >= PART * longest_s)
        return PlainCosts(encode_s * 1e3, median(map(_token_ms, recent)))

    def contradicts(self, predicted: PlainCosts, factor: float) -> bool:
        """Tell whether a prediction of passes or of a whole window's encoding is off by more than `factor`.

        Lower quartiles are compared, as profiles hold them.
        """
        pairs = [
            (_low([own.verify_s * 1e3 / own.steps for own in self._plain if own.steps]), predicted.token_ms),
            (_low([own.encode_s * 1e3 for own in self._whole]), predicted.encode_ms),
        ]
        return any(seen and not 1 / factor <= seen / expected <= factor for seen, expected in pairs)

    def sums(self) -> DraftSums:
        """Return the run so far."""
        costs = self.plain()
        return DraftSums(
            plain_windows=len(self._plain),
            plain_s=sum(stats.wall_s for stats in self._plain),
            drafted_windows=len(self._drafted),
            drafted_s=sum(stats.wall_s for stats in self._drafted),
            without_s=sum(map(costs.window_s, self._drafted)),
        )


def _token_ms(stats: DecodeStats) -> float:
    return (stats.wall_s - stats.encode_s) * 1e3 / max(1, stats.tokens)


def _low(values: Sequence[float]) -> float | None:
    """Return the lower quartile, None of too few values."""
    return sorted(values)[len(values) // 4] if len(values) >= _ENOUGH else None
