"""Has an engine ready for what a run is asked for, and refuses what is beyond its model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from as2d_cli.batch.display import Display
from as2d_cli.batch.loading import Models, loaded
from as2d_cli.batch.pipeline import FileWork, Pipeline
from as2d_cli.batch.request import BatchRequest
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import RequestError
from as2d_cli.domain.languages import LANGUAGES
from as2d_cli.domain.types import Request
from as2d_cli.engine.comparison import Compared
from as2d_cli.engine.engine import Engine
from as2d_cli.engine.messages import ModelRef
from as2d_cli.engine.scheduler import WindowOutcome
from as2d_cli.models import loader
from as2d_cli.models.registry import cannot
from as2d_cli.profile.guard import DraftGuard
from as2d_cli.profile.plan import DraftPlan


@dataclass(frozen=True, slots=True)
class Ready:
    """An engine that is about to begin."""

    engine: Engine
    request: Request
    """What is asked of every window."""
    plan: DraftPlan | None
    """What was chosen by this device's profile, if that was left to it."""
    load_s: float
    vad: bool
    guard: DraftGuard | None
    """Watches whether drafts still pay, where a profile says what windows take without."""
    compared: Compared | None
    """Has windows decoded both ways, if that is asked for."""

    @property
    def spec(self) -> TargetSpec:
        """Facts about the target."""
        return self.engine.target_spec

    @property
    def is_drafter_lost(self) -> bool:
        """Whether the drafter, if one was wanted, is not at work although nobody chose to do without."""
        return not self.engine.is_drafting and (self.plan is None or self.plan.drafting)

    @property
    def paused_windows(self) -> int:
        """Windows decoded without drafts because these had come to cost time."""
        return self.guard.paused_windows if self.guard else 0

    def pipeline(self, request: Request, on_window: Callable[[FileWork, WindowOutcome], None]) -> Pipeline:
        """Return what takes files through the engine, each window asked for `request`."""
        return Pipeline(
            self.engine,
            request,
            compared=self.compared,
            vad=self.vad,
            guard=self.guard,
            on_window=on_window,
        )


@contextmanager
def ready(asked: BatchRequest, display: Display) -> Iterator[Ready]:
    """Have an engine for what is asked; its first able drafter runs with it, if that pays.

    Raises `ModelError` or `PluginError` for what cannot be used, `RequestError` for what is beyond a model.
    """
    wanted = Models(
        asked.target,
        next(iter(asked.able_drafters), None),
        asked.threads,
        others=asked.able_drafters[1:],
        auto_budget=asked.auto_budget,
        memory_limit_bytes=asked.memory_limit_bytes,
        decode=asked.decode,
    )
    with loaded(wanted, display) as models:
        engine = models.engine
        request = _checked(asked, engine.target_spec)
        _check_prompt(asked.prompt, models.target, engine.target_spec.max_prompt_tokens)
        plan = models.settle()
        yield Ready(
            engine,
            request,
            plan,
            time.perf_counter() - models.began,
            asked.vad,
            DraftGuard(plan.plain) if plan and plan.drafting and plan.plain else None,
            Compared(engine) if asked.compares else None,
        )


def _checked(asked: BatchRequest, spec: TargetSpec) -> Request:
    """Return the request for all windows. Raises `RequestError` for what is beyond the model."""
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
            f"it knows: {known}" if known else "it is told of no language: leave out --language",
        )
    wants_times = asked.timed or asked.word_timestamps
    return Request(asked.task, language, word_times=wants_times, prompt=asked.prompt, to=to)


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
