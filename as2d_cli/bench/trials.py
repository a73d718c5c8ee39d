"""What a run leaves: one trial per mode, window and repeat, and all that is needed to print it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from as2d_cli.domain.errors import RequestError
from as2d_cli.system.special_files import read_any

FORMAT = 1
"""Raised when trials change their meaning."""


@dataclass(frozen=True, slots=True)
class TrialStep:
    """One target pass; `began_ms` counts from the start of the window."""

    committed: int
    proposed: int
    accepted: int
    available: int
    began_ms: float
    ms: float


@dataclass(frozen=True, slots=True)
class Trial:
    """One window decoded in one mode, once."""

    mode: str
    """Label of the mode."""
    kind: str
    drafter: str | None
    cap: int
    alone: bool
    repeat: int
    block: int
    turn: int
    """How many modes had decoded the block before, in this repeat."""
    block_wall_s: float
    """Wall time of the whole block, equal in all of its trials."""
    file: str
    window: int
    start_s: float
    audio_s: float
    language: str | None
    tokens: tuple[int, ...]
    text: str
    steps: tuple[TrialStep, ...]
    encode_s: float
    verify_s: float
    control_s: float
    draft_s: float
    """How long the target waited for the drafter."""
    wall_s: float
    """From the target's process having the window to its result."""
    began_s: float
    """When the target took the window up; an arbitrary origin, the same in the whole run."""
    max_tokens: int
    """Most tokens the target may commit to a window."""
    drafted: int
    published_ms: tuple[float, ...] = ()
    """When each draft token appeared, counted from `began_s`; negative in a head start."""
    draft_began_ms: float | None = None
    peak_bytes: int | None = None
    """Most memory that the processes of the mode and the main one have used so far."""

    @property
    def key(self) -> tuple[str, int, int]:
        """Mode, repeat and block: trials with one key share their wall time."""
        return (self.mode, self.repeat, self.block)

    @property
    def lead(self) -> int:
        """Draft tokens that were ready when decoding began."""
        return self.steps[0].available if self.steps else 0


@dataclass(frozen=True, slots=True)
class Staircase:
    """What a target pass costs by row count, ms, beside the named drafter; and the drafter's own costs."""

    drafter: str
    idle_ms: dict[int, float]
    busy_ms: dict[int, float]
    draft_encode_ms: float
    draft_token_ms: float
    measured_at: str


@dataclass(frozen=True, slots=True)
class ReplayedChoice:
    """What the replay says of one choice, with what the run itself took where it was run."""

    choice: str
    replay_ms: float
    speedup: float
    of_oracle: float
    slower: float
    native_ms: float | None = None


@dataclass(slots=True)
class Results:
    """Everything of one run."""

    provenance: dict[str, Any] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    references: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """True text and language by file, where every window of the file was decoded."""
    staircases: list[Staircase] = field(default_factory=list)
    oracle: list[ReplayedChoice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the reader of the numbers must know."""

    def lines(self) -> Iterator[str]:
        """Yield the JSON lines of everything but the trials: these are written as they come."""
        for name, (text, language) in self.references.items():
            yield dumps("reference", {"file": name, "text": text, "lang": language}, self.provenance)
        for staircase in self.staircases:
            yield dumps("staircase", asdict(staircase), self.provenance)
        for verdict in self.oracle:
            yield dumps("oracle", asdict(verdict), self.provenance)
        for note in self.notes:
            yield dumps("note", {"text": note}, self.provenance)


def trial_line(trial: Trial, provenance: dict[str, Any]) -> str:
    """Return one trial as a JSON line that says all of where it comes from."""
    packed = asdict(trial)
    packed["steps"] = [list(step.values()) for step in packed["steps"]]
    return dumps("window", packed, provenance)


def dumps(kind: str, values: dict[str, Any], provenance: dict[str, Any]) -> str:
    """Return one JSON line."""
    record = {"format": FORMAT, "type": kind, **values, "provenance": provenance}
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
    return text.encode("utf-8", "backslashreplace").decode()  # of names that are no UTF-8


def read_results(path: Path) -> Results:
    """Read what a run has written. Raises `RequestError`, naming the line that is not understood."""
    results = Results()
    try:
        lines = read_any(path).decode().rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        try:
            _take(results, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RequestError(
                f"{path}, line {number}: is no result of this version's bench: {error}"
            ) from error
    if not results.trials:
        raise RequestError(f"{path}: holds no measured window")
    return results


def _take(results: Results, record: dict[str, Any]) -> None:
    if record.pop("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    kind, results.provenance = record.pop("type"), record.pop("provenance")
    if kind == "window":
        results.trials.append(_trial(record))
    elif kind == "reference":
        results.references[record["file"]] = (record["text"], record["lang"])
    elif kind == "staircase":
        for name in ("idle_ms", "busy_ms"):
            record[name] = {int(rows): float(ms) for rows, ms in record[name].items()}
        results.staircases.append(Staircase(**record))
    elif kind == "oracle":
        results.oracle.append(ReplayedChoice(**record))
    else:
        results.notes.append(record["text"])


def _trial(record: dict[str, Any]) -> Trial:
    record["steps"] = tuple(TrialStep(*step) for step in record["steps"])
    for name in ("tokens", "published_ms"):
        record[name] = tuple(record[name])
    known = {item.name for item in fields(Trial)}
    return Trial(**{name: value for name, value in record.items() if name in known})


def labels(trials: Iterable[Trial]) -> list[str]:
    """Return the modes in the order of their first trials' turns: target-only first."""
    return list(dict.fromkeys(trial.mode for trial in trials))
