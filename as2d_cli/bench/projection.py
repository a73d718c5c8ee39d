"""What `as2d bench --shape` finds: the costs of a pair of shapes, what follows from them, and native laps."""

from __future__ import annotations

from dataclasses import dataclass

from as2d_cli.engine.measure import PairCosts


@dataclass(frozen=True, slots=True)
class ShapeCosts:
    """The costs of a pair for whole windows of 30 s, and how they were come by."""

    costs: PairCosts
    """Its `decode_threads` are the target's threads in all it does."""
    target_share: float
    """Part of a window that was opened to measure the target; costs are scaled up from it."""
    drafter_share: float
    load_s: float
    measure_s: float


@dataclass(frozen=True, slots=True)
class Projected:
    """One way to decode the recorded windows."""

    threads: int
    """The target's."""
    cap: int
    """Most candidates of a step; 0: no drafts."""
    window_s: float
    """Mean time per window."""
    speedup: float
    """Of target-only's time over this one's, pooled over the windows."""
    decode_speedup: float
    """The same without encoding and prefill."""
    slower: int
    """Windows slower than target-only."""
    tokens_per_step: float


@dataclass(frozen=True, slots=True)
class NativeLap:
    """The same recorded windows, decoded one way and the other."""

    windows: int
    plain_s: float
    """Target-only on all threads."""
    drafted_s: float

    @property
    def speedup(self) -> float:
        """How many times as long they took plainly."""
        return self.plain_s / self.drafted_s


@dataclass(frozen=True, slots=True)
class Projection:
    """All ways, target-only on all threads first, and what the profile would choose."""

    ways: tuple[Projected, ...]
    chosen: Projected
    reason: str
    windows: int
    opening: float
    """Share of encoder and prefill in target-only's time."""
