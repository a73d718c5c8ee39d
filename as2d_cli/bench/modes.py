"""The modes that are compared. A mode is a policy on the one decode loop, never a loop of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from as2d_cli.bench.baselines.async_coupled import COUPLED
from as2d_cli.bench.baselines.serial import SERIAL_MODES
from as2d_cli.decoding import AlignMode
from as2d_cli.domain.errors import RequestError
from as2d_cli.profile.plan import CAPS, DraftPlan
from as2d_cli.system.toml import suggestion

TARGET_ONLY = "target-only"
AS2D = "as2d"
AUTO = "as2d-auto"
ALONE_CAP = CAPS[-1]
"""The cap with which windows are also decoded one at a time, to compare with the replay."""

ALIGNED: dict[str, AlignMode] = {f"{AS2D}-{align}": align for align in ("edit", "ngram", "none")}
"""Ablations: the last cap with another alignment than the hybrid one."""

Kind = Literal["plain", "serial", "coupled", "as2d"]


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to decode all windows."""

    name: str
    kind: Kind
    drafter: str | None = None
    cap: int = 0
    """Most candidates per step; for `as2d` only."""
    align: AlignMode = "hybrid"
    alone: bool = False
    """Whether every window waits until the one before is finished, so that no draft has a head start."""
    decode_threads: int | None = None
    """Threads of the target's passes; None: all of them."""

    @property
    def label(self) -> str:
        """Name that no other mode of a run has."""
        return self.name if self.drafter is None else f"{self.name} {self.drafter}"


PLAIN = Mode(TARGET_ONLY, "plain")


def _known_names() -> tuple[str, ...]:
    """Return what `choose_modes` takes."""
    caps = tuple(f"{AS2D}-{cap}" for cap in CAPS)
    return (TARGET_ONLY, *SERIAL_MODES, COUPLED, AS2D, *caps, *ALIGNED, AUTO, f"{AS2D}-alone")


def choose_modes(names: Sequence[str] | None, drafters: Sequence[str]) -> list[Mode]:
    """Return the modes called `names` (None: all) with each of the drafters; target-only always comes first.

    `as2d` stands for all caps; the ablations of alignment are measured only by name. What `as2d-auto`
    decodes with is settled later (see `settle`): here it is target-only. Raises `RequestError` for an
    unknown name.
    """
    chosen = [TARGET_ONLY, *(names if names is not None else _all_names())]
    modes = [mode for name in chosen for mode in _named(name, drafters)]
    return list(dict.fromkeys(modes))


def settle(modes: Sequence[Mode], budget: DraftPlan) -> list[Mode]:
    """Return `modes` with what `as2d-auto` has chosen: a drafter with a cap, or none."""
    kind: Kind = "plain" if budget.drafter is None else "as2d"
    auto = Mode(AUTO, kind, budget.drafter, budget.cap, decode_threads=budget.decode_threads)
    return [auto if mode.name == AUTO else mode for mode in modes]


def _all_names() -> tuple[str, ...]:
    return (*SERIAL_MODES, COUPLED, AS2D, AUTO, f"{AS2D}-alone")


def _named(name: str, drafters: Sequence[str]) -> list[Mode]:
    if name == TARGET_ONLY:
        return [PLAIN]
    if name == AUTO:
        return [Mode(AUTO, "plain")]
    if name not in _known_names():
        raise RequestError(f"there is no mode {name!r}", suggestion(name, _known_names()))
    return [mode for drafter in drafters for mode in _with_drafter(name, drafter)]


def _with_drafter(name: str, drafter: str) -> list[Mode]:
    if name in SERIAL_MODES:
        return [Mode(name, "serial", drafter)]
    if name == COUPLED:
        return [Mode(name, "coupled", drafter)]
    if name == f"{AS2D}-alone":
        return [Mode(f"{AS2D}-{ALONE_CAP}-alone", "as2d", drafter, ALONE_CAP, alone=True)]
    if name in ALIGNED:
        return [Mode(name, "as2d", drafter, CAPS[-1], ALIGNED[name])]
    caps = CAPS if name == AS2D else (int(name.rpartition("-")[2]),)
    return [Mode(f"{AS2D}-{cap}", "as2d", drafter, cap) for cap in caps]
