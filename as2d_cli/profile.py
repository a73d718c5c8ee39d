"""What this device makes of a pair of models: measured once, kept in the cache, read at every start."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from as2d_cli.device import device
from as2d_cli.errors import As2dError
from as2d_cli.measure import DraftCosts, PairCosts, TargetCosts
from as2d_cli.paths import cache_root
from as2d_cli.workers import ModelRef
from as2d_cli.writers import write_atomic

FORMAT = 1
"""Raised when the meaning of a stored profile changes; older ones are then measured anew."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Costs with what they hold for."""

    key: dict[str, str]
    """Device, models, threads, MNN version: a profile with another key is of no use."""
    measured_at: float
    """Seconds since the epoch."""
    costs: PairCosts


def profile_key(target: ModelRef, drafter: ModelRef) -> dict[str, str]:
    """Return what a profile of this pair on this device depends on."""
    return {
        "format": str(FORMAT),
        "device": device(),
        "mnn": version("MNN"),
        # the folder of a converted model is named by a digest of its files' sources and options
        "target": f"{target.entry.name}/{target.path.name}",
        "drafter": f"{drafter.entry.name}/{drafter.path.name}",
        "threads": f"{target.threads}+{drafter.threads}",
    }


def profiles_folder() -> Path:
    """Return where profiles are kept."""
    return cache_root() / "profiles"


def path_of(key: dict[str, str]) -> Path:
    """Return the file of the profile with this key."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return profiles_folder() / f"{digest}.json"


def load(key: dict[str, str]) -> Profile | None:
    """Return the stored profile with this key; None if there is none or it is damaged."""
    try:
        profile = read(path_of(key))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, As2dError):
        return None
    return profile if profile.key == key else None


def read(path: Path) -> Profile:
    """Read one profile. Raises `OSError`, or `ValueError`, `KeyError`, `TypeError` if it is damaged."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    costs = raw["costs"]
    return Profile(
        key={str(name): str(value) for name, value in raw["key"].items()},
        measured_at=float(raw["measured_at"]),
        costs=PairCosts(
            _target(costs["target"]),
            _target(costs["target_busy"]),
            _drafter(costs["drafter"]),
            _drafter(costs["drafter_busy"]),
        ),
    )


def _target(raw: dict[str, Any]) -> TargetCosts:
    for name in ("short_ms", "long_ms"):
        raw[name] = {int(rows): _positive(ms) for rows, ms in raw[name].items()}
    _positive(raw["encode_ms"])
    if raw["short_ms"].keys() != raw["long_ms"].keys():
        raise ValueError("row counts measured with few and with many cached tokens differ")
    return TargetCosts(**raw)


def _drafter(raw: dict[str, Any]) -> DraftCosts:
    _positive(raw["encode_ms"])
    _positive(raw["token_ms"])
    return DraftCosts(**raw)


def _positive(ms: object) -> float:
    if not isinstance(ms, float | int) or not 0 < ms < float("inf"):
        raise ValueError(f"{ms!r} is no time that work can take")
    return float(ms)


def store(key: dict[str, str], costs: PairCosts) -> Profile:
    """Keep a profile, whole or not at all. Raises `OutputError`."""
    profile = Profile(key, time.time(), costs)
    write_atomic(path_of(key), json.dumps(asdict(profile), indent=1) + "\n")
    return profile
