"""The models of a run: fetched, chosen by what is known of this device, loaded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from as2d_cli.batch.display import Display
from as2d_cli.domain.errors import PluginError
from as2d_cli.domain.types import WINDOW_S
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import DecodeSettings, ModelRef
from as2d_cli.models import loader, weights
from as2d_cli.models.registry import ModelEntry
from as2d_cli.profile.choice import DraftChoice
from as2d_cli.profile.plan import DraftPlan

DRAFTER_THREADS = 1


@dataclass(frozen=True, slots=True)
class Models:
    """Which models a run is to have, and within which limits."""

    target: ModelEntry
    drafter: ModelEntry | None
    threads: int
    """Of the target; the drafter has `DRAFTER_THREADS`."""
    others: Sequence[ModelEntry] = ()
    """Further drafters, used where this device's profile says that they are better."""
    auto_budget: bool = False
    """Whether this device's profile decides if a drafter is used, and how much."""
    memory_limit_bytes: int | None = None
    decode: DecodeSettings = field(default_factory=DecodeSettings)


@dataclass(slots=True)
class Loaded:
    """Models at work."""

    target: ModelRef
    engine: Engine
    began: float
    """When loading began, by `time.perf_counter`."""
    choice: DraftChoice | None
    """What chooses; None: nothing is left to choose."""
    plan: DraftPlan | None
    """What was chosen by a stored profile."""

    def settle(self) -> DraftPlan | None:
        """Decide what drafts are worth here, if that is not known yet; None: it was not to be decided.

        May take 20 s, so whether the run makes sense should be known before. Raises `ModelError`.
        """
        if self.choice is not None and self.plan is None and self.engine.is_drafting:
            self.plan = self.choice.by_first_measurement(self.engine)
        return self.plan


@contextmanager
def loaded(models: Models, display: Display) -> Iterator[Loaded]:
    """Load models, and stop them at the end. A drafter that cannot be had costs only its drafts.

    Raises `ModelError` or `PluginError` if there is no way to have the target.
    """
    settings = EngineSettings(
        _fetched(models.target, models.threads, display),
        _fetched_drafter(models.drafter, display),
        models.decode,
    )
    began = time.perf_counter()
    plan = choice = None
    if models.auto_budget:
        others = _in_cache(models.others)
        choice = DraftChoice(settings, others, models.memory_limit_bytes, display.note)
        settings, plan = choice.by_profiles()
    with Engine(settings, note=display.note, progress=display.steps) as engine:
        if flaw := engine.target_spec.features.flaw(WINDOW_S):
            raise PluginError(f"model {models.target.name!r} cannot be used: {flaw}")
        yield Loaded(settings.target, engine, began, choice, plan)


def _fetched(entry: ModelEntry, threads: int, display: Display) -> ModelRef:
    """Return a model, fetched and converted first where that is needed. Raises as `weights.ensure`."""
    with display.fetching() as progress:
        return ModelRef(entry, weights.ensure(entry, progress), threads)


def _fetched_drafter(entry: ModelEntry | None, display: Display) -> ModelRef | None:
    """As `_fetched`, but a plugin that cannot be used costs only its drafts. Raises `ModelError`."""
    if entry is None:
        return None
    try:
        loader.drafts_inside(entry)
        return _fetched(entry, DRAFTER_THREADS, display)
    except PluginError as error:
        display.note(f"going on without the drafter: {error.with_hint}")
        return None


def _in_cache(drafters: Sequence[ModelEntry]) -> list[ModelRef]:
    """Return further drafters; one that is not in the cache has no profile either."""
    found = []
    for entry in drafters:
        with suppress(PluginError):  # nor has one whose plugin is broken
            if (path := weights.find(entry)) is not None:
                found.append(ModelRef(entry, path, DRAFTER_THREADS))
    return found
