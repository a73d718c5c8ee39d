"""How near the tool's own choices come to choosing, in hindsight, the best for every window.

All functions take times: an array of shape (windows, choices) in ms, column 0 target-only, and sum
before they divide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from as2d_cli.decoding.controller import Controller, FixedBudget, Floats, Policy, StepCosts
from as2d_cli.decoding.replay import RecordedWindow, ReplayCosts, replay
from as2d_cli.domain.errors import DecodeError


@dataclass(frozen=True, slots=True)
class Setup:
    """What runs: a drafter or none, and the threads of both."""

    drafter: str | None
    target_threads: int
    drafter_threads: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """A setup and the most candidates of a step."""

    setup: Setup
    cap: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The same windows, in the same order, as recorded with one setup, and that setup's costs."""

    windows: Sequence[RecordedWindow]
    costs: ReplayCosts


@dataclass(frozen=True, slots=True)
class Verdict:
    """One way to choose, measured against target-only decoding and against the oracle."""

    total_ms: float
    speedup: float
    """Target-only time / this time, pooled."""
    of_oracle: float
    """Oracle time / this time, pooled: its throughput as a share of the oracle's."""
    slower: float
    """Share of windows slower than target-only."""


@dataclass(frozen=True, slots=True)
class Hindsight:
    """The best choices known afterwards."""

    oracle: Verdict
    static: int
    """Column of the choice that is fastest when kept for all windows."""
    best_static: Verdict


def new_controller(choice: Choice, costs: StepCosts) -> Policy:
    """Return a controller that begins with the true costs, but keeps its own copy of them."""
    if choice.setup.drafter is None:
        return FixedBudget(0)
    return Controller(StepCosts(costs.table(False), costs.table(True)), cap=choice.cap)


def catalog_times(choices: Sequence[Choice], recordings: Mapping[Setup, Recording]) -> Floats:
    """Replay every window with every choice; return times in ms, shape (windows, choices).

    Drafters get no head start, so that windows do not depend on each other; each choice has one
    policy for all windows, which learns from them in order. Raises DecodeError if a recording is
    missing or the windows of two recordings differ.
    """
    _check(choices, recordings)
    columns = []
    for choice in choices:
        recording = recordings[choice.setup]
        own, drafted = new_controller(choice, recording.costs.steps), choice.setup.drafter is not None
        columns.append(
            [replay(window, recording.costs, own, drafted=drafted).total_ms for window in recording.windows]
        )
    times: Floats = np.array(columns, np.float64).T
    return times


def hindsight(times: Floats) -> Hindsight:
    """Return the oracle's and the best static choice of `times`. Raises DecodeError if there are none."""
    if times.ndim != 2 or not times.size:
        raise DecodeError(f"an oracle needs times by window and choice, not an array of shape {times.shape}")
    static = int(times.sum(axis=0).argmin())
    return Hindsight(
        oracle=judge(times.min(axis=1), times),
        static=static,
        best_static=judge(times[:, static], times),
    )


def judge(own_ms: Floats, times: Floats) -> Verdict:
    """Judge window times `own_ms`, shape (windows,), against `times`. Raises DecodeError if counts differ."""
    if own_ms.shape != times.shape[:1]:
        raise DecodeError(f"{own_ms.shape} window times cannot be judged against {times.shape}")
    total = float(own_ms.sum())
    return Verdict(
        total_ms=total,
        speedup=float(times[:, 0].sum()) / total,
        of_oracle=float(times.min(axis=1).sum()) / total,
        slower=float((own_ms > times[:, 0]).mean()),
    )


def _check(choices: Sequence[Choice], recordings: Mapping[Setup, Recording]) -> None:
    texts = set()
    for choice in choices:
        if choice.setup not in recordings:
            raise DecodeError(f"there is no recording with {choice.setup}")
        texts.add(tuple(window.tokens for window in recordings[choice.setup].windows))
    if len(texts) > 1:
        raise DecodeError("the recordings to compare are not of the same windows")
    if not choices or choices[0].setup.drafter is not None:
        raise DecodeError("the first choice of a catalog must be target-only")
