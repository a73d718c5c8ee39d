"""What a run did and how fast, as data and as a few lines of text. Ratios are taken from sums."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from as2d_cli.budget import Budget
from as2d_cli.comparison import Comparison
from as2d_cli.types import DecodeStats


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What one node of a cluster did."""

    name: str
    engines: int
    threads: int
    """Of each engine's target."""
    audio_s: float
    wall_s: float
    """Since its first engine was ready, until its last one ended."""
    budget: Budget | None
    """What was chosen by this node's profile, if that was left to it."""

    @property
    def rtfx(self) -> float:
        """Audio seconds per wall second."""
        return self.audio_s / self.wall_s if self.wall_s else 0.0

    def line(self) -> str:
        """Say how fast it was, and what was chosen for it."""
        line = (
            f"node {self.name}: {_count(self.engines, 'engine')} with {_count(self.threads, 'thread')}, "
            f"{self.audio_s:.1f} s of audio ({self.rtfx:.1f}x real time)"
        )
        return line if self.budget is None else f"{line}; {_choice(self.budget)}: {self.budget.reason}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return {
            "node": self.name,
            "engines": self.engines,
            "threads": self.threads,
            "audio_s": _rounded(self.audio_s),
            "wall_s": _rounded(self.wall_s),
            "rtfx": _rounded(self.rtfx),
            "budget": self.budget and asdict(self.budget),
        }


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run, whole or interrupted."""

    target: str
    drafter: str | None
    drafter_lost: bool = False
    """Whether the drafter could not be loaded, or was given up on the way."""
    refused: str | None = None
    """Why the drafter that was chosen has nothing to do, where that was known beforehand."""
    files: int = 0
    done: int = 0
    skipped: int = 0
    failed: int = 0
    audio_s: float = 0.0
    """Audio decoded or found to be without speech, failed files' good windows included."""
    silent_windows: int = 0
    """Windows without speech, which were not decoded."""
    doubtful_windows: int = 0
    """Windows whose text repeats itself or has no end."""
    wall_s: float = 0.0
    """From the first window handed out to the last file written; under compare, but on a cluster, decoding
    with drafts only."""
    load_s: float = 0.0
    """Starting both processes and loading the models."""
    stats: DecodeStats = field(default_factory=DecodeStats)
    comparison: Comparison | None = None
    differing: tuple[str, ...] = ()
    """Windows whose tokens differ with drafts, each as `FILE at S s`."""
    interrupted: bool = False
    budget: Budget | None = None
    """What was chosen by this device's profile, if that was left to it."""
    predicted_plain_s: float = 0.0
    """What this device's profile says that the decoded windows take without drafts."""
    paused_windows: int = 0
    """Windows decoded without drafts because these had come to cost time."""
    stopped: bool = False
    """Whether the first failure ended the run, as asked."""
    noun: str = "file"
    """What `files`, `done`, `skipped` and `failed` count."""
    nodes: tuple[NodeReport, ...] = ()
    """Of a cluster; those that were lost included."""

    @property
    def rtfx(self) -> float:
        """Audio seconds per wall second."""
        return self.audio_s / self.wall_s if self.wall_s else 0.0

    @property
    def shares(self) -> dict[str, float]:
        """Share of the engines' time that went to each part; `wait` is all that is not the target at work."""
        parts = {
            "encode": self.stats.encode_s,
            "verify": self.stats.verify_s,
            "control": self.stats.control_s,
        }
        engine_s = self._engine_s
        shares = {name: seconds / engine_s if engine_s else 0.0 for name, seconds in parts.items()}
        return {**shares, "wait": max(0.0, 1.0 - sum(shares.values())) if engine_s else 0.0}

    @property
    def _engine_s(self) -> float:
        """Wall time that `stats` are of: those of a cluster's engines are summed up."""
        if not self.nodes:
            return self.wall_s
        if self.comparison is not None:
            return self.comparison.drafted_s
        return sum(node.engines * node.wall_s for node in self.nodes)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been done yet."""
        return not (self.done or self.failed)

    @property
    def is_doubtful(self) -> bool:
        """Whether a comparison was asked for and did not find everything identical."""
        found = self.comparison
        return found is not None and (found.identical < found.windows or found.undecided > 0)

    @property
    def succeeded(self) -> bool:
        """Whether all files were done, and compared equal if that was asked."""
        return not self.failed and not self.interrupted and not self.is_doubtful

    def lines(self) -> list[str]:
        """Return the report as text, an ending in doubt last so that it is seen."""
        lines = [self._files_line()]
        if self.stats.steps:
            lines += [self._speed_line(), self._decoding_line(), self._shares_line()]
        if self.budget is not None:
            lines.append(self._budget_line(self.budget))
        lines += [node.line() for node in self.nodes]
        if self.silent_windows:
            lines.append(f"{_count(self.silent_windows, 'window')} without speech not decoded")
        if self.doubtful_windows:
            lines.append(
                f"{_count(self.doubtful_windows, 'window')} in a loop or without an end: see the warnings"
            )
        if self.comparison is not None:
            lines += _comparison_lines(self.comparison)
            lines += [f"DIFFERENT TEXT with drafts: {where}" for where in self.differing]
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "target": self.target,
            "drafter": self.drafter,
            "drafter_lost": self.drafter_lost,
            "drafter_refused": self.refused,
            "files": self.files,
            "done": self.done,
            "skipped": self.skipped,
            "failed": self.failed,
            "interrupted": self.interrupted,
            "budget": self.budget and asdict(self.budget),
            "predicted_plain_s": _rounded(self.predicted_plain_s),
            "paused_windows": self.paused_windows,
            "stopped": self.stopped,
            "audio_s": _rounded(self.audio_s),
            "silent_windows": self.silent_windows,
            "doubtful_windows": self.doubtful_windows,
            "wall_s": _rounded(self.wall_s),
            "load_s": _rounded(self.load_s),
            "rtfx": _rounded(self.rtfx),
            "shares": {name: _rounded(share) for name, share in self.shares.items()},
            "stats": stats_dict(self.stats),
            "nodes": [node.as_dict() for node in self.nodes],
            "comparison": self.comparison and _comparison_dict(self.comparison, self.differing),
        }

    def _files_line(self) -> str:
        parts = [f"{self.done} of {_count(self.files, self.noun)} done"]
        parts += [f"{self.skipped} skipped"] if self.skipped else []
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += ["stopped at the first failure"] if self.stopped else []
        return ("interrupted: " if self.interrupted else "") + ", ".join(parts)

    def _speed_line(self) -> str:
        if not self.audio_s:  # a model that reads
            return f"{self.wall_s:.1f} s, model loaded in {self.load_s:.1f} s"
        return (
            f"{self.audio_s:.1f} s of audio in {self.wall_s:.1f} s ({self.rtfx:.1f}x real time), "
            f"models loaded in {self.load_s:.1f} s"
        )

    def _decoding_line(self) -> str:
        stats = self.stats
        refused = self.budget is not None and not self.budget.drafting
        drafter = None if refused else self.drafter
        line = f"target {self.target}, drafter {drafter or 'none'}"
        if self.refused:
            line += f" ({self.refused})"
        if drafter and self.drafter_lost:
            line += " (lost)"
        if drafter and not stats.proposed:
            line += " (unused)"
        if not stats.proposed:
            return line
        return (
            f"{line}: {stats.tokens_per_step:.2f} tokens per step, "
            f"{stats.acceptance:.0%} of proposed tokens accepted"
        )

    def _budget_line(self, budget: Budget) -> str:
        """Say what was chosen for this device and why, and what was predicted beside what was measured."""
        line = f"chosen for this device: {_choice(budget)}: {budget.reason}"
        if self.predicted_plain_s and not self.comparison:
            plain, measured = self.predicted_plain_s, self.stats.wall_s
            drafted = f"{plain * (1 - budget.saving):.1f} s, " if budget.drafting else ""
            line += f"; predicted {drafted}without drafts {plain:.1f} s, measured {measured:.1f} s"
        if self.paused_windows:
            line += f"; {_count(self.paused_windows, 'window')} without drafts, which had come to cost time"
        return line

    def _shares_line(self) -> str:
        return "time: " + ", ".join(f"{name} {share:.0%}" for name, share in self.shares.items())


def _choice(budget: Budget) -> str:
    if not budget.drafting:
        return "no drafts"
    threads = f", passes on {_count(budget.decode_threads, 'thread')}" if budget.decode_threads else ""
    return f"{budget.drafter}, up to {budget.cap} draft tokens per step{threads}"


def stats_dict(stats: DecodeStats) -> dict[str, Any]:
    """Return decode statistics as plain values, ratios included, for JSON."""
    values = {**asdict(stats), "tokens_per_step": stats.tokens_per_step, "acceptance": stats.acceptance}
    return {name: _rounded(value) for name, value in values.items()}


def _comparison_lines(found: Comparison) -> list[str]:
    verdict = "identical" if found.identical == found.windows else "NOT IDENTICAL"
    lines = [f"compare: {verdict}, {found.identical} of {_count(found.windows, 'window')} the same text"]
    if found.undecided:
        lines.append(f"compare: {_count(found.undecided, 'window')} FAILED one of the two ways")
    if found.windows:
        lines.append(
            f"compare: speedup {found.speedup:.2f}x ({_pace(found.speedup)}), "
            f"{found.drafted_s:.1f} s against {found.plain_s:.1f} s; "
            f"{_count(found.slower, 'window')} slower"
        )
    return lines


def _pace(speedup: float) -> str:
    """Say plainly what the figure, as printed, means."""
    shown = round(speedup, 2)
    if shown == 1:
        return "no faster than target-only"
    return f"{'faster' if shown > 1 else 'slower'} than target-only"


def _comparison_dict(found: Comparison, differing: tuple[str, ...]) -> dict[str, Any]:
    return {
        "windows": found.windows,
        "identical": found.identical,
        "undecided": found.undecided,
        "slower": found.slower,
        "drafted_s": _rounded(found.drafted_s),
        "target_only_s": _rounded(found.plain_s),
        "speedup": _rounded(found.speedup),
        "differing": list(differing),
    }


def _rounded(value: float) -> float:
    """Return it as a report holds all figures, so that equal ones stay equal, and the greater no less."""
    return round(value, 4)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
