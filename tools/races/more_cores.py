"""What the default pair would gain where target and drafter have cores of their own: a projection.

    python tools/races/more_cores.py [--pair NAME] [--seconds 6]

Each model is measured alone on one thread and on two. From that follows, by Amdahl's law, what it takes on
other numbers of threads; the decode loop then replays the recorded windows of `as2d bench --shape` on a
virtual clock with these costs. What the two take from each other where they share memory is left out, and so
is that a processor with more cores may have slower or faster ones: a projection, not a measurement. The rows
for the cores that there are can be checked with `as2d bench`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

from as2d_cli.bench.acceptance import Acceptance, recorded_acceptance
from as2d_cli.bench.run.shape import replays
from as2d_cli.decoding.replay import Replay
from as2d_cli.engine.measure import DraftCosts, PairCosts, TargetCosts, measure_drafter, measure_target
from as2d_cli.models import loader, weights
from as2d_cli.models.registry import ModelEntry, load_registry

CAP = 23
FULL_WINDOW_S = 25.0


@dataclass(frozen=True, slots=True)
class Machine:
    """Cores, and how many threads the models have beside each other; target-only has all cores."""

    name: str
    cores: int
    target: int
    drafter: int
    leads: bool = False
    """Whether the draft is complete before decoding begins."""


MACHINES = (
    Machine("2 cores, the draft complete before", 2, 2, 1, leads=True),
    Machine("1 core for the target, 1 for the drafter, plain on 1", 1, 1, 1),
    Machine("4 cores", 4, 3, 1),
    Machine("4 cores", 4, 2, 2),
    Machine("8 cores", 8, 6, 2),
    Machine("8 cores", 8, 4, 4),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs on one thread and on two."""

    target: tuple[TargetCosts, TargetCosts]
    drafter: tuple[DraftCosts, DraftCosts]


def main() -> None:
    """Measure, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pair", default=None)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each measurement")
    arguments = parser.parse_args()
    registry = load_registry()
    pair = registry.pair(arguments.pair)
    target, drafter = registry.model(pair.target), registry.model(pair.drafter)
    measured = Measured(
        (_target(target, 1, arguments.seconds), _target(target, 2, arguments.seconds)),
        (_drafter(drafter, 1, arguments.seconds), _drafter(drafter, 2, arguments.seconds)),
    )
    acceptance = recorded_acceptance()
    for line in (*_costs(measured), "", *_table(measured, acceptance)):
        print(line)


def _target(entry: ModelEntry, threads: int, seconds: float) -> TargetCosts:
    return measure_target(loader.load_target(entry, weights.ensure(entry), threads), seconds)


def _drafter(entry: ModelEntry, threads: int, seconds: float) -> DraftCosts:
    drafter = loader.load_drafter(entry, weights.ensure(entry), threads)
    deadline = time.perf_counter() + seconds
    return measure_drafter(drafter, lambda: time.perf_counter() >= deadline)


def _costs(measured: Measured) -> Iterator[str]:
    yield "| threads | encoder, ms | pass of 1, 5, 8, 16, 24 rows, ms | drafter's encoder | its token |"
    yield "|--:|--:|---|--:|--:|"
    for threads in (1, 2, 3, 4, 8):
        target, drafter = _target_on(measured, threads), _drafter_on(measured, threads)
        rows = ", ".join(f"{target.short_ms[rows]:.1f}" for rows in (1, 5, 8, 16, 24))
        note = "" if threads <= 2 else " (projected)"
        yield (
            f"| {threads}{note} | {target.encode_ms:.0f} | {rows} | {drafter.encode_ms:.0f} | "
            f"{drafter.token_ms:.2f} |"
        )


def _table(measured: Measured, acceptance: Acceptance) -> Iterator[str]:
    yield "| cores | target + drafter threads | all 20 windows | decoding only | windows over 25 s | slower |"
    yield "|---|---|--:|--:|--:|--:|"
    full = [number for number, own in enumerate(acceptance.windows) if own.audio_s >= FULL_WINDOW_S]
    for machine in MACHINES:
        plain = _replays(measured, acceptance, Machine("", machine.cores, machine.cores, 1), cap=0)
        own = _replays(measured, acceptance, machine, cap=CAP)
        slower = sum(one.total_ms > other.total_ms for one, other in zip(own, plain, strict=True))
        yield (
            f"| {machine.name} | {machine.target} + {machine.drafter} | {_total(plain) / _total(own):.2f}x | "
            f"{_decoding(plain) / _decoding(own):.2f}x | "
            f"{_total([plain[at] for at in full]) / _total([own[at] for at in full]):.2f}x | "
            f"{slower} of {len(own)} |"
        )


def _replays(measured: Measured, acceptance: Acceptance, machine: Machine, *, cap: int) -> list[Replay]:
    target, drafter = _target_on(measured, machine.target), _drafter_on(measured, machine.drafter)
    costs = PairCosts(target, target, drafter, drafter, machine.target)
    return replays(costs, acceptance, cap, head_start_ms=1e6 if machine.leads else 0.0)


def _total(replays: list[Replay]) -> float:
    return sum(one.total_ms for one in replays)


def _decoding(replays: list[Replay]) -> float:
    return sum(one.total_ms - one.encoded_ms for one in replays)


def _target_on(measured: Measured, threads: int) -> TargetCosts:
    one, two = measured.target
    return TargetCosts(
        encode_ms=_amdahl(one.encode_ms, two.encode_ms, threads),
        short_ms={rows: _amdahl(one.short_ms[rows], two.short_ms[rows], threads) for rows in one.short_ms},
        long_ms={rows: _amdahl(one.long_ms[rows], two.long_ms[rows], threads) for rows in one.long_ms},
        row_invariant=one.row_invariant and two.row_invariant,
        peak_bytes=one.peak_bytes,
    )


def _drafter_on(measured: Measured, threads: int) -> DraftCosts:
    one, two = measured.drafter
    return DraftCosts(
        _amdahl(one.encode_ms, two.encode_ms, threads),
        _amdahl(one.token_ms, two.token_ms, threads),
        one.peak_bytes,
    )


def _amdahl(one_ms: float, two_ms: float, threads: int) -> float:
    """Return the time on `threads` of work that takes `one_ms` on one thread and `two_ms` on two."""
    serial_ms = min(max(0.0, 2 * two_ms - one_ms), one_ms)
    return serial_ms + (one_ms - serial_ms) / threads


if __name__ == "__main__":
    main()
