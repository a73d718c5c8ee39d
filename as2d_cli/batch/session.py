"""Loaded models and their engine, ready for a request and kept as long as a run or a program needs them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from as2d_cli.batch.display import Display
from as2d_cli.batch.pipeline import Pipeline
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.work import windows_in
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import PluginError, RequestError
from as2d_cli.domain.languages import AUTO_SURE, EACH_SURE, LANGUAGES
from as2d_cli.domain.types import WINDOW_S, Request
from as2d_cli.engine.comparison import Compared
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import DecodeSettings, ModelRef
from as2d_cli.models import loader, weights
from as2d_cli.models.registry import ModelEntry, cannot
from as2d_cli.profile import side_by_side
from as2d_cli.profile.choice import DraftChoice
from as2d_cli.profile.guard import DraftGuard, guard_of
from as2d_cli.profile.machine_load import LoadWatch
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.profile.run_costs import DraftSums
from as2d_cli.profile.store import USUAL_WINDOWS, Work
from as2d_cli.profile.write_back import write_back
from as2d_cli.system.device import free_memory_bytes

DRAFTER_THREADS = 1


@dataclass(frozen=True, slots=True)
class Models:
    """Which models a run is to have, and within which limits."""

    target: ModelEntry
    drafter: ModelEntry | None
    threads: int
    """Of all targets; a drafter has `DRAFTER_THREADS`."""
    others: Sequence[ModelEntry] = ()
    """Further drafters, used where this device's profile says that they are better."""
    auto_budget: bool = False
    """Whether this device's profile decides if a drafter is used, and how much."""
    memory_limit_bytes: int | None = None
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    jobs: int | None = 1
    """How many targets share the windows; None: as many as pay for `work`."""
    work: Work = field(default_factory=Work)
    """What there is to do."""


@dataclass(slots=True)
class LoadedModels:
    """Models at work."""

    target: ModelRef
    drafter: str | None
    engine: Engine
    began: float
    """When loading began, by `time.perf_counter`."""
    choice: DraftChoice | None
    """What chooses; None: nothing is left to choose."""
    plan: DraftPlan | None
    """What was chosen by a stored profile, or by how much there is to do."""
    engines: int

    def choose_plan(self) -> DraftPlan | None:
        """Decide what drafts are worth here, if that is not known yet; None: it was not to be decided.

        May take 20 s, so whether the run makes sense should be known before. Raises `ModelError`.
        """
        if self.choice is not None and self.plan is None and self.engine.is_drafting:
            self.plan = self.choice.by_first_measurement(self.engine)
        return self.plan


@contextmanager
def load_models(models: Models, display: Display) -> Iterator[LoadedModels]:
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
        choice = DraftChoice(settings, others, models.memory_limit_bytes, models.work, display.note)
        settings, plan = choice.by_profiles()
    if (pairs := _pairs(models, settings, plan)) > 1:
        settings, plan = _side_by_side(models, settings, plan, pairs)
    with Engine(settings, note=display.note, progress=display.steps) as engine:
        if flaw := engine.target_spec.features.flaw(WINDOW_S):
            raise PluginError(f"model {models.target.name!r} cannot be used: {flaw}")
        drafter = settings.drafter.entry.name if settings.drafter else None
        yield LoadedModels(settings.target, drafter, engine, began, choice, plan, settings.pairs)


def _pairs(models: Models, settings: EngineSettings, plan: DraftPlan | None) -> int:
    """Return how many pairs there are to be: drafts that were asked for, or save more, need one."""
    if models.jobs is not None:
        return models.jobs
    wants_drafts = not models.auto_budget and settings.drafter is not None
    saves_more = plan is not None and plan.saving > side_by_side.SAVING
    if wants_drafts or saves_more or loader.changes_bits(models.target.plugin, "threads"):
        return 1
    free = [size for size in (free_memory_bytes(), models.memory_limit_bytes) if size is not None]
    path = settings.target.path
    return side_by_side.engines_for(models.work.windows, models.threads, path, min(free, default=None))


def _side_by_side(
    models: Models, settings: EngineSettings, plan: DraftPlan | None, pairs: int
) -> tuple[EngineSettings, DraftPlan | None]:
    """Return settings of several pairs, with drafters only if those were asked for."""
    threads = models.threads // pairs
    target = replace(settings.target, threads=threads, decode_threads=None)
    settings = replace(settings, target=target, pairs=pairs)
    if models.auto_budget:
        reason = f"{pairs} engines side by side are faster for this much"
        settings, plan = replace(settings, drafter=None), DraftPlan(False, reason)
    return settings, plan


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


@dataclass(frozen=True, slots=True)
class Session:
    """One target, perhaps a drafter, and the engine that runs them. `pipeline` takes files through it."""

    engine: Engine
    pipeline: Pipeline
    request: Request
    """What is asked of every window, but the question."""
    plan: DraftPlan | None
    """What was chosen by this device's profile, if that was left to it."""
    drafter: str | None
    """The drafter that was loaded, if there is one."""
    load_s: float
    guard: DraftGuard | None
    """Watches what windows take and whether drafts still pay, where a profile predicts it."""
    compared: Compared | None
    """Has windows decoded both ways, if that is asked for."""
    engines: int
    """How many targets share the windows."""
    threads: int
    """Of each target."""

    def request_for(self, question: str | None) -> Request:
        """Return what is asked of every window of a file."""
        return self.request if question is None else replace(self.request, question=question)

    @property
    def is_drafter_lost(self) -> bool:
        """Whether the drafter, if one was wanted, is not at work although nobody chose to do without."""
        return not self.engine.is_drafting and (self.plan is None or self.plan.drafting)

    @property
    def draft_sums(self) -> DraftSums:
        """Windows decoded with drafts and without."""
        return self.guard.sums if self.guard else DraftSums()


@contextmanager
def open_session(asked: BatchRequest, display: Display) -> Iterator[Session]:
    """Load the models of a request; its first able drafter runs with the target, if that pays.

    Raises `ModelError` or `PluginError` for what cannot be used, `RequestError` for what is beyond a model.
    """
    jobs = 1 if asked.compares else asked.jobs
    wanted = Models(
        asked.target,
        next(iter(asked.able_drafters), None),
        asked.threads,
        others=asked.able_drafters[1:],
        auto_budget=asked.auto_budget,
        memory_limit_bytes=asked.memory_limit_bytes,
        decode=asked.decode,
        jobs=jobs,
        work=_work(asked),
    )
    with load_models(wanted, display) as models:
        engine = models.engine
        request = _window_request(asked, engine.target_spec)
        _check_prompt(request.prompt, models.target, engine.target_spec.max_prompt_tokens)
        is_stored = models.plan is not None
        plan = models.choose_plan()
        guard = guard_of(plan)
        compared = Compared(engine) if asked.compares else None
        pipeline = Pipeline(
            engine,
            compared=compared,
            vad=asked.vad,
            rescue=asked.rescue,
            guard=guard,
            choice=asked.audio_choice,
        )
        load_s = time.perf_counter() - models.began
        watch = LoadWatch((os.getpid(),)) if guard is not None else None  # it reads all of /proc
        engines, threads = models.engines, models.target.threads
        yield Session(
            engine, pipeline, request, plan, models.drafter, load_s, guard, compared, engines, threads
        )
    if models.choice and plan and guard and watch:
        write_back(models.choice, plan, guard, watch.load(), pipeline.sightings, doubts=is_stored)


def _work(asked: BatchRequest) -> Work:
    """Return what there is to do; how many windows only if something depends on it."""
    is_open = (asked.auto_budget or asked.jobs is None) and not asked.compares
    most = max(side_by_side.ENOUGH * asked.threads, USUAL_WINDOWS)
    windows = windows_in(asked.inputs, most) if is_open else 1
    return Work(asked.task, asked.language, max(1, windows), asked.latency_quantile)


def _window_request(asked: BatchRequest, spec: TargetSpec) -> Request:
    """Return the request for all windows. Raises `RequestError` for what is beyond the model."""
    if asked.asks:
        return _question_request(asked, spec)
    languages, language = spec.languages, asked.language
    if asked.task not in spec.tasks:
        raise cannot(asked.target.name, asked.task)
    to = asked.translate_to or "en"
    if to not in spec.translates_to:
        known = ", ".join(LANGUAGES.get(code, code) for code in spec.translates_to)
        raise RequestError(
            f"model {asked.target.name!r} does not translate to {LANGUAGES.get(to, to)}",
            f"it translates to: {known}",
        )
    if language is None and len(languages) == 1:
        language = languages[0]
    if language is not None and language not in languages:
        known = ", ".join(LANGUAGES.get(code, code) for code in languages)
        raise RequestError(
            f"model {asked.target.name!r} does not know {LANGUAGES.get(language, language)}",
            f"it knows: {known}" if known else "its language cannot be set: leave out --language",
        )
    wants_times = asked.timed or asked.word_timestamps
    sure = None if language or not languages else EACH_SURE if asked.language_each else AUTO_SURE
    return Request(asked.task, language, word_times=wants_times, prompt=asked.prompt, to=to, sure=sure)


def _question_request(asked: BatchRequest, spec: TargetSpec) -> Request:
    """Return the request of windows about which a question is asked; each file adds its own."""
    if "ask" not in spec.tasks or spec.max_passage_tokens:
        raise RequestError(
            f"model {asked.target.name!r} does not answer questions by ear", "choose one with --reader"
        )
    return Request(task="ask", language=asked.language)


def _check_prompt(prompt: str | None, target: ModelRef, allowed: int) -> None:
    """Raise `RequestError` if the prompt is too long: cut short it would not be what was asked for."""
    if prompt is None:
        return
    if not allowed:
        raise RequestError(f"model {target.entry.name!r} takes no prompt", "leave out prompt and hotwords")
    tokens = loader.token_counter(target.entry, target.path)(f" {prompt}")
    if tokens > allowed:
        raise RequestError(
            f"prompt and hotwords are {tokens} tokens, model {target.entry.name!r} takes {allowed}",
            "shorten them",
        )
