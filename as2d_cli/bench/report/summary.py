"""What a mode comes to. Every ratio is one of sums, never a mean of ratios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from as2d_cli.bench.trials import Trial, labels

TOLERANCE = 0.03
"""How much slower than target-only a window may be before it counts as clearly slower: clocks, caches and
schedulers move repeated runs of one and the same work by as much."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of the wall time of all blocks; they sum to 1."""

    encode: float
    verify: float
    control: float
    draft: float
    """Target waiting for the drafter."""
    wait: float
    """Target without a window to work on."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One mode over all windows and repeats."""

    mode: str
    alone: bool
    windows: int
    repeats: int
    audio_s: float
    """Of all windows in all repeats."""
    wall_s: float
    """Of all blocks in all repeats."""
    tokens: int
    batch_speedup: float
    """Target-only's wall time of blocks over this mode's, for the same blocks and repeats."""
    batch_speedups: tuple[float, ...]
    """The same by repeat."""
    window_speedup: float
    """Target-only's window latencies over this mode's, each window's least over the repeats."""
    slower: float
    """Share of windows whose least latency is above target-only's least."""
    clearly_slower: float
    """The same, by more than `TOLERANCE`."""
    latency_s: tuple[float, float, float]
    """0.5, 0.9 and 0.99 quantile of the latency of windows in all repeats."""
    tokens_per_step: float
    histogram: Mapping[int, int]
    """How many steps committed so many tokens."""
    proposed: int
    accepted: int
    drafted: int
    lead: float
    """Mean draft tokens that were ready when decoding began."""
    shares: Shares
    peak_bytes: int | None

    @property
    def rtfx(self) -> float:
        """Audio seconds per wall second."""
        return _ratio(self.audio_s, self.wall_s)

    @property
    def tokens_per_s(self) -> float:
        """Tokens per wall second."""
        return _ratio(self.tokens, self.wall_s)

    @property
    def acceptance(self) -> float:
        """Accepted / proposed draft tokens."""
        return _ratio(self.accepted, self.proposed)

    @property
    def utilisation(self) -> float:
        """Accepted / drafted tokens."""
        return _ratio(self.accepted, self.drafted)


def summarise(trials: Sequence[Trial]) -> list[Summary]:
    """Return one summary per mode, in the order of the trials; all are compared to the first one."""
    by_mode: dict[str, list[Trial]] = {mode: [] for mode in labels(trials)}
    for trial in trials:
        by_mode[trial.mode].append(trial)
    plain = next(iter(by_mode.values()), [])
    return [_summary(own, plain) for own in by_mode.values()]


def least_latency_s(trials: Iterable[Trial]) -> dict[int, float]:
    """Return the least latency of each window."""
    least: dict[int, float] = {}
    for trial in trials:
        least[trial.window] = min(trial.wall_s, least.get(trial.window, trial.wall_s))
    return least


def window_speedups(own: Iterable[Trial], plain: Iterable[Trial]) -> dict[int, float]:
    """Return target-only's least latency over this mode's, by window."""
    ours, theirs = least_latency_s(own), least_latency_s(plain)
    return {window: theirs[window] / ours[window] for window in ours if window in theirs}


def _block_walls(trials: Iterable[Trial]) -> dict[tuple[int, int], float]:
    """Return the wall time of each (repeat, block)."""
    return {trial.key[1:]: trial.block_wall_s for trial in trials}


def _summary(own: Sequence[Trial], plain: Sequence[Trial]) -> Summary:
    walls, plain_walls = _block_walls(own), _block_walls(plain)
    ours, theirs = least_latency_s(own), least_latency_s(plain)
    steps = [step for trial in own for step in trial.steps]
    latencies = np.quantile([trial.wall_s for trial in own], (0.5, 0.9, 0.99))
    peaks = [trial.peak_bytes for trial in own if trial.peak_bytes is not None]
    return Summary(
        mode=own[0].mode,
        alone=own[0].alone,
        windows=len(ours),
        repeats=len({trial.repeat for trial in own}),
        audio_s=sum(trial.audio_s for trial in own),
        wall_s=sum(walls.values()),
        tokens=sum(len(trial.tokens) for trial in own),
        batch_speedup=_pooled(walls, plain_walls),
        batch_speedups=tuple(
            _pooled({place: wall for place, wall in walls.items() if place[0] == repeat}, plain_walls)
            for repeat in sorted({trial.repeat for trial in own})
        ),
        window_speedup=_ratio(sum(theirs[window] for window in ours), sum(ours.values())),
        slower=float(np.mean([ours[window] > theirs[window] for window in ours])),
        clearly_slower=float(np.mean([ours[window] > (1 + TOLERANCE) * theirs[window] for window in ours])),
        latency_s=(float(latencies[0]), float(latencies[1]), float(latencies[2])),
        tokens_per_step=_ratio(sum(step.committed for step in steps), len(steps)),
        histogram=dict(sorted(Counter(step.committed for step in steps).items())),
        proposed=sum(step.proposed for step in steps),
        accepted=sum(step.accepted for step in steps),
        drafted=sum(trial.drafted for trial in own),
        lead=_ratio(sum(trial.lead for trial in own), len(own)),
        shares=_shares(own, sum(walls.values())),
        peak_bytes=max(peaks, default=None),
    )


def _pooled(walls: Mapping[tuple[int, int], float], plain: Mapping[tuple[int, int], float]) -> float:
    """Compare the blocks that both have decoded: a mode that failed half-way has fewer."""
    both = [place for place in walls if place in plain]
    return _ratio(sum(plain[place] for place in both), sum(walls[place] for place in both))


def _shares(trials: Sequence[Trial], wall_s: float) -> Shares:
    return Shares(
        encode=_ratio(sum(trial.encode_s for trial in trials), wall_s),
        verify=_ratio(sum(trial.verify_s for trial in trials), wall_s),
        control=_ratio(sum(trial.control_s for trial in trials), wall_s),
        draft=_ratio(sum(trial.draft_s for trial in trials), wall_s),
        wait=_ratio(wall_s - sum(trial.wall_s for trial in trials), wall_s),
    )


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom else 0.0
