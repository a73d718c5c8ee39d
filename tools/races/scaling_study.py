"""What a cluster would make of a million hours of audio, from what was measured on one machine.

python tools/races/scaling_study.py

Every part of a run has a pace of its own; the slowest is the run's. Paces are audio hours per hour. What is
assumed, not measured, is in `Assumed`; change it there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

ARCHIVE_H = 1e6
NODES = (1, 10, 100, 1000)
FORMATS = 2
PUTS_AT_ONCE = 8
"""As `as2d_cli.batch.run` has it."""


@dataclass(frozen=True)
class Measured:
    """On a 2-core AMD EPYC VM; docs/scaling.md has commands and commits."""

    engine_rtfx: float = 21.1
    """Whisper base with segment times, full windows: 539 s of speech in 25.5 s (docs/benchmarks.md)."""
    start_s: float = 6.0
    """From the command to the first engine that is ready, models in the cache."""
    item_s: float = 0.002
    """Processor time of the driver for a file or window that comes back: 1.2 to 1.4 ms, and a margin."""
    put_busy_s: float = 0.0025
    """Processor time of the driver for an object that it puts: 1.7 to 2.4 ms, and a margin."""


@dataclass(frozen=True)
class Assumed:
    """Not measured here."""

    node_usd_per_h: float = 0.08
    """A node with two cores."""
    put_s: float = 0.03
    """Until an object store has taken an object."""
    get_s: float = 0.05
    """Until it begins to give one; an input is fetched once."""
    fetch_s: float = 30.0
    """A node fetches and converts its model the first time."""
    reader_rtfx: float = 300.0
    """Decoding, resampling and voice detection on one core."""


@dataclass(frozen=True)
class Archive:
    """Recordings of equal length."""

    name: str
    file_h: float
    is_divided: bool

    @property
    def items_per_h(self) -> float:
        """What the driver hears of an hour of audio: files, or windows of divided ones (24 s on average)."""
        return 3600 / 24 if self.is_divided else 1 / self.file_h


ARCHIVES = (Archive("recordings of 1 h", 1.0, True), Archive("calls of 5 min", 5 / 60, False))


def paces(archive: Archive, nodes: int, measured: Measured, assumed: Assumed) -> dict[str, float]:
    """Return the pace of each part of a run, in audio hours per hour."""
    found = {
        "engines": nodes * measured.engine_rtfx,
        "driver": 3600
        / (measured.item_s * archive.items_per_h + FORMATS * measured.put_busy_s / archive.file_h),
        "puts": 3600 * archive.file_h * PUTS_AT_ONCE / (FORMATS * assumed.put_s),
    }
    if archive.is_divided:
        found["readers"] = (1 + nodes // 4) * assumed.reader_rtfx
    else:  # an engine's process fetches between windows
        found["engines"] = nodes / (1 / measured.engine_rtfx + assumed.get_s / 3600 / archive.file_h)
    return found


def main() -> None:
    """Print a table for each archive."""
    measured, assumed = Measured(), Assumed()
    for archive in ARCHIVES:
        print_(f"{archive.name}\n")
        print_("| nodes | audio h per h | days for a million hours | $ | slowest part | next slowest |")
        print_("|--:|--:|--:|--:|---|---|")
        for nodes in NODES:
            found = sorted(paces(archive, nodes, measured, assumed).items(), key=lambda one: one[1])
            (slowest, pace), (following, limit) = found[:2]
            hours = ARCHIVE_H / pace + (measured.start_s + assumed.fetch_s) / 3600
            cost = hours * nodes * assumed.node_usd_per_h
            print_(
                f"| {nodes:,} | {pace:,.0f} | {hours / 24:,.1f} | {cost:,.0f} "
                f"| {slowest} | {following} ({limit:,.0f}) |"
            )
        print_("")


def print_(line: str) -> None:
    """Write a line to stdout."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
