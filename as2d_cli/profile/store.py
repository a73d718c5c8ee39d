"""What this device makes of a pair of models: measured once, kept in the cache, read at every start."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from as2d_cli.domain.errors import As2dError, OutputError, reason
from as2d_cli.domain.tasks import Task
from as2d_cli.engine.measure import ROWS, DraftCosts, PairCosts, TargetCosts
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models.loader import runtime_versions
from as2d_cli.models.weights import as_loaded
from as2d_cli.profile.plan import CAPS, QUANTILE, DraftPlan, Forecast, PlainCosts, Way, forecast, plan_drafts
from as2d_cli.profile.seen import MOST_KINDS, Seen, name_of, read_seen
from as2d_cli.profile.trust import costs_flaw
from as2d_cli.system.atomic_files import write_text_atomic
from as2d_cli.system.device import MAX_THREADS, device, fixed_work_ms
from as2d_cli.system.json_files import read_json
from as2d_cli.system.paths import cache_root

T = TypeVar("T")
FORMAT = 4
"""Raised when the meaning of a stored profile changes; older ones are then measured anew."""

DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading a damaged profile may raise."""
KEY = ("format", "device", "target", "drafter", "threads")
"""Names in the key of every profile; the others are runtimes, with their versions."""
_TOO_MUCH = 1e13
"""More ms, bytes and seconds of any clock than there can be; a date can still be made of it."""


_RETRY_S = 7 * 86400.0
"""How long a drafter that lost, or was seen to be of no use, is not tried again."""
_FADING = 0.5
"""Weight of earlier runs beside the next one."""
_TELLING = 3
"""Drafted windows that it takes to do without the drafter."""


@dataclass(frozen=True, slots=True)
class DraftRecord:
    """How drafted windows did beside plain ones in runs, the last one counting most."""

    windows: float = 0.0
    drafted_s: float = 0.0
    plain_s: float = 0.0
    """What the same windows would have taken without drafts."""
    last_at: float = 0.0
    """When the last of these runs ended, seconds since the epoch."""

    def after(self, windows: int, drafted_s: float, plain_s: float) -> DraftRecord:
        """Return the record with a run that has just ended."""
        return DraftRecord(
            _FADING * self.windows + windows,
            _FADING * self.drafted_s + drafted_s,
            _FADING * self.plain_s + plain_s,
            time.time(),
        )

    @property
    def loss(self) -> float:
        """Share of their time that drafts cost, if that keeps them from being tried now; else 0."""
        is_old = not 0 <= time.time() - self.last_at < _RETRY_S
        if is_old or self.windows < _TELLING or self.drafted_s <= self.plain_s:
            return 0.0
        return self.drafted_s / self.plain_s - 1


USUAL_WINDOWS = 20
"""Of a run for which a plan is shown: ten minutes of speech."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done, as far as a choice depends on it."""

    task: Task = "transcribe"
    language: str | None = None
    windows: int = 1
    """At least so many."""
    quantile: float = QUANTILE
    """Share of windows that drafts must not make slower."""

    @property
    def names(self) -> tuple[str, ...]:
        """What is known of it goes by, the most special first: one language says nothing about another."""
        return name_of(self.task, self.language), ""


@dataclass(frozen=True, slots=True)
class Profile:
    """Costs with what they hold for."""

    key: dict[str, str]
    """Device, models, threads, versions of runtimes: a profile with another key is of no use."""
    measured_at: float
    """Seconds since the epoch."""
    fixed_work_ms: float
    """What `device.fixed_work_ms` gave then."""
    costs: tuple[PairCosts, ...]
    """By threads of the target's passes, all of them first."""
    forecasts: Mapping[str, Forecast]
    """What follows from the costs, by kind of work, with the drafter as it was seen at it; "" if it was not.
    To find it out takes too long for a start."""
    seen: Mapping[str, Seen] = field(default_factory=dict)
    """What runs saw of the drafter, by kind of work."""
    record: DraftRecord = field(default_factory=DraftRecord)
    """How drafts did in runs."""

    def as_dict(self) -> dict[str, Any]:
        """Return what is kept in a file and shown as JSON, with the plan for a usual run as `budget`."""
        return {**asdict(self), "budget": asdict(self.plan(Work(windows=USUAL_WINDOWS)))}

    @property
    def plain(self) -> PlainCosts:
        """What windows take without drafts."""
        return self.forecasts[""].plain

    def has_seen(self, work: Work) -> bool:
        """Tell whether runs of this kind of work saw the drafter."""
        return work.names[0] in self.seen

    def plan(self, work: Work) -> DraftPlan:
        """Return what to do for some work, but for the drafter's name.

        What was seen long ago is no reason to do without drafts: nothing more can be seen that way.
        """
        plans = {
            name: plan_drafts(self.forecasts[name], windows=work.windows, quantile=work.quantile)
            for name in work.names
            if name in self.forecasts
        }
        return next(plan for name, plan in plans.items() if plan.drafting or not self._is_old(name))

    def _is_old(self, name: str) -> bool:
        return bool(name) and not 0 <= time.time() - self.seen[name].last_at < _RETRY_S

    def scaled(self, factor: float) -> Profile:
        """Return what a device makes of the pair that takes `factor` times as long."""
        costs = tuple(own.scaled(factor) for own in self.costs)
        forecasts = {name: made.scaled(factor) for name, made in self.forecasts.items()}
        return replace(self, costs=costs, forecasts=forecasts)

    def after(self, seen: Mapping[str, Seen]) -> Profile:
        """Return the profile with all that was seen of the drafter until now. It may take some seconds."""
        new = {
            name: forecast(self.costs, now)
            for name, now in seen.items()
            if name not in self.forecasts or now.differs(self.seen.get(name, Seen()))
        }
        kept = {name: made for name, made in self.forecasts.items() if not name or name in seen}
        return replace(self, seen=dict(seen), forecasts={**kept, **new})


def profile_key(target: ModelRef, drafter: ModelRef) -> dict[str, str]:
    """Return what a profile of this pair on this device depends on. Raises `PluginError`."""
    runtimes = runtime_versions(target.entry.plugin, drafter.entry.plugin)
    return {
        "format": str(FORMAT),
        "device": device(),
        **{name.lower(): version for name, version in runtimes.items()},
        "target": as_loaded(target.entry, target.path),
        "drafter": as_loaded(drafter.entry, drafter.path),
        "threads": f"{target.threads}+{drafter.threads}",
    }


def profiles_folder() -> Path:
    """Return where profiles are kept."""
    return cache_root() / "profiles"


def path_of(key: dict[str, str]) -> Path:
    """Return the file of the profile with this key."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return profiles_folder() / f"{digest}.json"


def load(key: dict[str, str], note: Callable[[str], None] = lambda _: None) -> Profile | None:
    """Return the stored profile with this key; None, with a `note`, if it cannot be trusted."""
    try:
        path = path_of(key)
        profile = read(path)
    except FileNotFoundError:
        return None
    except As2dError:  # there is no cache
        return None
    except DAMAGE as error:
        note(f"{path}: the profile is damaged ({type(error).__name__}) and will be measured anew")
        return None
    if profile.key != key:
        note(f"{path}: the profile is another device's or models' and will be measured anew")
        return None
    if flaw := costs_flaw(profile.costs):
        note(f"{path}: the profile was disturbed ({flaw}) and will be measured anew")
        with suppress(OSError):  # of a cache that is not ours to write
            path.unlink()
        return None
    return profile


def read(path: Path) -> Profile:
    """Read one profile. Raises one of `DAMAGE` if it cannot be read."""
    raw = read_json(path)
    costs = tuple(_pair(own) for own in raw["costs"])
    if not costs:
        raise ValueError("no costs")
    key = {str(name): str(value) for name, value in raw["key"].items()}
    if not key.keys() >= set(KEY):
        raise ValueError("what it holds for is not told")
    return Profile(
        key=key,
        measured_at=_positive(raw["measured_at"]),
        fixed_work_ms=_positive(raw["fixed_work_ms"]),
        costs=costs,
        forecasts=_forecasts(raw["forecasts"], costs),
        seen=_seen(raw),
        record=_record(raw.get("record")),
    )


def _record(raw: dict[str, Any] | None) -> DraftRecord:
    """Return the record of a profile; one that no run has been held against has none."""
    if raw is None:
        return DraftRecord()
    for value in raw.values():
        if not isinstance(value, float | int) or not 0 <= value < _TOO_MUCH:
            raise ValueError(f"{value!r} is nothing that drafts can have come to")
    if raw["windows"]:
        _positive(raw["plain_s"])
    return DraftRecord(**raw)


def _seen(raw: dict[str, Any]) -> dict[str, Seen]:
    found = _kinds(raw.get("seen", {}), read_seen)
    if not raw["forecasts"].keys() <= {"", *found}:
        raise ValueError("something is predicted by what was not seen")
    return found


def _kinds(raw: object, read_one: Callable[[Any], T]) -> dict[str, T]:
    if not isinstance(raw, dict) or len(raw) > MOST_KINDS + 1:
        raise ValueError("what is known by kind of work is no table, or too much")
    return {str(name): read_one(value) for name, value in raw.items()}


def _forecasts(raw: object, costs: Sequence[PairCosts]) -> dict[str, Forecast]:
    found = _kinds(raw, lambda one: _forecast(one, costs))
    if "" not in found:
        raise ValueError("nothing is predicted")
    return found


def _forecast(raw: dict[str, Any], costs: Sequence[PairCosts]) -> Forecast:
    plain_ms = tuple(map(_positive, raw["plain_ms"]))
    ways = tuple(_way(one, len(plain_ms), costs) for one in raw["ways"])
    plain = PlainCosts(**raw["plain"])
    _positive(plain.encode_ms)
    _positive(plain.token_ms)
    if not (plain_ms and ways and isinstance(raw["is_exact"], bool)):
        raise ValueError("nothing is predicted")
    return Forecast(plain_ms, ways, plain, raw["is_exact"])


def _way(raw: dict[str, Any], windows: int, costs: Sequence[PairCosts]) -> Way:
    if raw["cap"] not in CAPS:
        raise ValueError(f"{raw['cap']!r} is no number of draft tokens")
    if raw["decode_threads"] not in [own.decode_threads for own in costs]:
        raise ValueError("nothing is known of passes on so many threads")
    first, later = (tuple(map(_positive, raw[name])) for name in ("first", "later"))
    if not len(first) == len(later) == windows:
        raise ValueError("another number of windows than are decoded plainly")
    return Way(raw["cap"], raw["decode_threads"], first, later)


def _pair(raw: dict[str, Any]) -> PairCosts:
    return PairCosts(
        _target(raw["target"]),
        _target(raw["target_busy"]),
        _drafter(raw["drafter"]),
        _drafter(raw["drafter_busy"]),
        _threads(raw["decode_threads"]),
    )


def _threads(number: object) -> int:
    if type(number) is not int or not 0 < number <= MAX_THREADS:
        raise ValueError(f"{number!r} is no number of threads")
    return number


def _target(raw: dict[str, Any]) -> TargetCosts:
    for name in ("short_ms", "long_ms"):
        raw[name] = {int(rows): _positive(ms) for rows, ms in raw[name].items()}
    _positive(raw["encode_ms"])
    if not raw["short_ms"].keys() == raw["long_ms"].keys() == set(ROWS):
        raise ValueError("other row counts than those that are measured")
    if not isinstance(raw["row_invariant"], bool):
        raise ValueError("whether rows are invariant is neither true nor false")
    _positive(raw["peak_bytes"])
    _positive(raw.get("spread", 1.0))
    epsilon = raw["row_epsilon"]
    if epsilon is not None and not (isinstance(epsilon, float) and 0 <= epsilon < _TOO_MUCH):
        raise ValueError(f"{epsilon!r} is no difference of logits")
    return TargetCosts(**raw)


def _drafter(raw: dict[str, Any]) -> DraftCosts:
    _positive(raw["encode_ms"])
    _positive(raw["token_ms"])
    _positive(raw["peak_bytes"])
    return DraftCosts(**raw)


def _positive(amount: object) -> float:
    if not isinstance(amount, float | int) or not 0 < amount < _TOO_MUCH:
        raise ValueError(f"{amount!r} is nothing that can have been measured")
    return float(amount)


def new(key: dict[str, str], costs: tuple[PairCosts, ...]) -> Profile:
    """Return a profile of costs that were measured just now."""
    return Profile(key, time.time(), fixed_work_ms(), costs, {"": forecast(costs)})


def store(key: dict[str, str], costs: tuple[PairCosts, ...]) -> Profile:
    """Keep a profile, whole or not at all. Raises `OutputError`."""
    profile = new(key, costs)
    keep(profile)
    return profile


def keep(profile: Profile) -> None:
    """Write a profile in the place of an older one. Raises `OutputError`."""
    write_text_atomic(path_of(profile.key), json.dumps(profile.as_dict(), indent=1) + "\n")


def forget(key: dict[str, str]) -> None:
    """Remove the profile with this key. Raises `OutputError`."""
    path = path_of(key)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be removed: {reason(error)}") from error
