"""What a run did and how fast, as data. Ratios are taken from sums."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from as2d_cli.domain.types import DecodeStats, WindowResult
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.profile.run_costs import DraftSums


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
    plan: DraftPlan | None
    """What was chosen by this node's profile, if that was left to it."""

    @property
    def rtfx(self) -> float:
        """Audio seconds per wall second."""
        return self.audio_s / self.wall_s if self.wall_s else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return {
            "node": self.name,
            "engines": self.engines,
            "threads": self.threads,
            "audio_s": _rounded(self.audio_s),
            "wall_s": _rounded(self.wall_s),
            "rtfx": _rounded(self.rtfx),
            "budget": self.plan and asdict(self.plan),
        }


@dataclass(slots=True)
class RunReport:
    """One run, whole or interrupted; counted up while it goes on."""

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
    """Windows whose text repeats itself, has no end or leaves out speech."""
    rescued_windows: int = 0
    """Windows for which a second decoding gave a better text."""
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
    plan: DraftPlan | None = None
    """What was chosen by this device's profile, if that was left to it."""
    predicted_plain_s: float = 0.0
    """What this device's profile says that the decoded windows take without drafts."""
    draft_sums: DraftSums = field(default_factory=DraftSums)
    """Windows decoded with drafts and without, where the profile's choice was doubted."""
    stopped: bool = False
    """Whether the first failure ended the run, as asked."""
    noun: str = "file"
    """What `files`, `done`, `skipped` and `failed` count."""
    runs_as: str = ""
    """What this machine decided on for the target: the engine and its precision."""
    engines: int = 1
    """Of this machine; they share the windows."""
    threads: int | None = None
    """Of each engine's target; None before it is loaded."""
    nodes: tuple[NodeReport, ...] = ()
    """Of a cluster; those that were lost included."""

    def add_window(self, seconds: float, result: WindowResult, *, silent: bool) -> None:
        """Count a window of so many seconds of audio, decoded or found to be without speech."""
        self.audio_s += seconds
        self.stats += result.stats
        self.silent_windows += silent
        self.doubtful_windows += result.is_doubtful
        self.rescued_windows += result.rescued
        if self.plan is not None and self.plan.plain is not None and not silent:
            self.predicted_plain_s += self.plan.plain.window_s(result.stats)

    @property
    def drafter_at_work(self) -> str | None:
        """The drafter that was chosen: another one than the first, if this device's profile says so."""
        return (self.plan and self.plan.drafter) or self.drafter

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
            "rescue": self.stats.rescue_s,
        }
        engine_s = self._engine_s
        shares = {name: seconds / engine_s if engine_s else 0.0 for name, seconds in parts.items()}
        return {**shares, "wait": max(0.0, 1.0 - sum(shares.values())) if engine_s else 0.0}

    @property
    def _engine_s(self) -> float:
        """Wall time that `stats` are of: those of a cluster's engines are summed up."""
        if not self.nodes:
            return self.wall_s * self.engines
        if self.comparison is not None:
            return self.comparison.drafted_s
        return sum(node.engines * node.wall_s for node in self.nodes)

    @property
    def without_drafts_s(self) -> float | None:
        """What all decoded windows would have taken plainly, by the undrafted ones; None without any."""
        sums = self.draft_sums
        return sums.plain_s + sums.without_s if sums.plain_windows else None

    @property
    def misprediction(self) -> float:
        """How many times apart the profile's prediction for plain windows and these are; 1.0 if not known."""
        seen, predicted = self.without_drafts_s, self.predicted_plain_s
        return max(seen / predicted, predicted / seen) if seen and predicted else 1.0

    @property
    def parts(self) -> tuple[RunReport, ...]:
        """The runs that this is the report of: itself."""
        return (self,)

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

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "target": self.target,
            "runs_as": self.runs_as,
            "drafter": self.drafter,
            "drafter_lost": self.drafter_lost,
            "drafter_refused": self.refused,
            "files": self.files,
            "done": self.done,
            "skipped": self.skipped,
            "failed": self.failed,
            "interrupted": self.interrupted,
            "budget": self.plan and asdict(self.plan),
            "predicted_plain_s": _rounded(self.predicted_plain_s),
            "paused_windows": self.draft_sums.paused_windows,
            "plain_windows": self.draft_sums.plain_windows,
            "drafted_windows": self.draft_sums.drafted_windows,
            "without_drafts_s": self.without_drafts_s and _rounded(self.without_drafts_s),
            "profile_dropped": self.draft_sums.dropped_profiles > 0,
            "stopped": self.stopped,
            "audio_s": _rounded(self.audio_s),
            "silent_windows": self.silent_windows,
            "doubtful_windows": self.doubtful_windows,
            "rescued_windows": self.rescued_windows,
            "wall_s": _rounded(self.wall_s),
            "load_s": _rounded(self.load_s),
            "engines": self.engines,
            "threads": self.threads,
            "rtfx": _rounded(self.rtfx),
            "shares": {name: _rounded(share) for name, share in self.shares.items()},
            "stats": stats_dict(self.stats),
            "nodes": [node.as_dict() for node in self.nodes],
            "comparison": self.comparison and _comparison_dict(self.comparison, self.differing),
        }


def stats_dict(stats: DecodeStats) -> dict[str, Any]:
    """Return decode statistics as plain values, ratios included, for JSON."""
    values = {**asdict(stats), "tokens_per_step": stats.tokens_per_step, "acceptance": stats.acceptance}
    del values["trials"], values["right"]  # for the choice of drafts, not for people
    return {name: _rounded(value) for name, value in values.items()}


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
