"""A whole run: load the models, know their costs, decode in every mode, replay what was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from as2d_cli.bench.modes import AUTO, Mode, choose_modes, settle
from as2d_cli.bench.run.clips import BenchWindow, Clip, find_clips, read_windows
from as2d_cli.bench.run.costs import Splits, choose, decode_settings, known_costs, staircase
from as2d_cli.bench.run.decoders import BaselineDecoder, BlockDecoder, EngineDecoder
from as2d_cli.bench.run.hindsight import Recorded, record_drafts, verdicts
from as2d_cli.bench.run.provenance import provenance
from as2d_cli.bench.run.rotation import Rotation
from as2d_cli.bench.trials import Results, Trial, trial_line
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import As2dError
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import ModelRef
from as2d_cli.profile.guard import guard_of
from as2d_cli.profile.plan import DraftPlan

SPECASR_NOTE = (
    "specasr-asp is SpecASR's truncated single-sequence drafts with recycling; its token tree is left out, "
    "for the decoders run here have causal masks only"
)
COUPLED_NOTE = "async-coupled drafts one window at a time: it cannot run ahead of a text that it follows"
EVERY_WINDOW_NOTE = "silent windows are decoded, too, which transcribe leaves out"


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """All that a run is asked for."""

    paths: tuple[Path, ...]
    target: ModelRef
    drafters: tuple[ModelRef, ...]
    modes: tuple[str, ...] | None = None
    """None: all of them."""
    repeats: int = 3
    limit: int | None = None
    """Most windows."""
    language: str | None = None
    oracle: bool = True
    command: str = "as2d bench"


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who is told what while a run is at work."""

    line: Callable[[str], object]
    """Takes JSON lines as they come."""
    note: Callable[[str], None]
    progress: Callable[[int, int], None]


def run_benchmark(request: BenchRequest, hooks: Hooks) -> Results:
    """Run everything. Raises `As2dError` if there is no way to begin, or target-only fails."""
    modes = choose_modes(request.modes, [drafter.entry.name for drafter in request.drafters])
    clips = find_clips(request.paths)
    with ExitStack() as stack:
        return _Benchmark(request, hooks, stack).measure(modes, clips)


@dataclass(slots=True)
class _Benchmark:
    """A run at work."""

    request: BenchRequest
    hooks: Hooks
    stack: ExitStack
    results: Results = field(default_factory=Results)
    engines: dict[str | None, Engine] = field(default_factory=dict)
    costs: dict[str, Splits] = field(default_factory=dict)

    def measure(self, modes: Sequence[Mode], clips: Sequence[Clip]) -> Results:
        request, results = self.request, self.results
        results.provenance = provenance(request.target, request.drafters, request.command)
        began = time.perf_counter()
        spec = self._start_engines(modes)
        loaded = time.perf_counter()
        windows, notes = read_windows(
            clips, language=request.language, known=spec.languages, limit=request.limit
        )
        results.provenance["load_s"] = round(loaded - began, 3)
        results.provenance["read_s"] = round(time.perf_counter() - loaded, 3)
        for note in notes:
            self._note(note)
        wanted = any(mode.name == AUTO for mode in modes) or request.oracle
        self._learn_costs(measure=wanted)
        auto = choose(self.costs, self._note if wanted else lambda _: None)
        results.provenance["budget"] = asdict(auto)
        modes = settle(modes, auto)
        decoders = self._decoders(modes, auto)
        rotation = Rotation(
            [mode for mode in modes if mode.label in decoders],
            decoders,
            windows,
            request.repeats,
            self._note,
            self.hooks.progress,
        )
        for trial in rotation.run():
            self._keep(trial)
        results.references = _references(windows)
        self._explain(modes)
        if request.oracle and self.costs:
            self._replay(windows, spec, auto)
        for line in results.lines():
            self.hooks.line(line)
        return results

    def _start_engines(self, modes: Sequence[Mode]) -> TargetSpec:
        """Load the target with each drafter, or alone if no mode needs one."""
        needed = {mode.drafter for mode in modes if mode.kind == "as2d"}
        named = [drafter for drafter in self.request.drafters if drafter.entry.name in needed]
        if any(mode.name == AUTO for mode in modes) or self.request.oracle:
            named = list(self.request.drafters)
        loaded: list[ModelRef | None] = [*named] or [None]
        for drafter in loaded:
            settings = EngineSettings(self.request.target, drafter)
            name = drafter.entry.name if drafter else None
            self.engines[name] = self.stack.enter_context(Engine(settings, note=self._note))
        return next(iter(self.engines.values())).target_spec

    def _learn_costs(self, *, measure: bool) -> None:
        """Take the profiles that there are; measure those that are missing, before anything else runs."""
        for drafter in self.request.drafters:
            name = drafter.entry.name
            engine = self.engines.get(name) if measure else None
            stored = known_costs(self.request.target, drafter, engine, self._note)
            if stored is not None:
                self.costs[name] = stored.costs
                self.results.staircases.append(staircase(name, stored))

    def _decoders(self, modes: Sequence[Mode], auto: DraftPlan) -> dict[str, BlockDecoder]:
        decoders: dict[str, BlockDecoder] = {}
        first = next(iter(self.engines))
        pairs: dict[str, BlockDecoder | None] = {}
        for mode in modes:
            if mode.kind in {"plain", "as2d"}:
                name = mode.drafter or first
                guarded = mode.name == AUTO and auto.drafting and auto.plain is not None
                decoders[mode.label] = EngineDecoder(
                    self.engines[name],
                    decode_settings(self.costs.get(name or ""), mode.decode_threads),
                    guard_of(auto) if guarded else None,
                )
                continue
            assert mode.drafter is not None
            if mode.drafter not in pairs:
                coupled = any(other.kind == "coupled" for other in modes)
                pairs[mode.drafter] = self._pair(mode.drafter, coupled)
            if (pair := pairs[mode.drafter]) is not None:
                decoders[mode.label] = pair
        return decoders

    def _pair(self, name: str, coupled: bool) -> BlockDecoder | None:
        drafter = next(model for model in self.request.drafters if model.entry.name == name)
        decoder = BaselineDecoder(
            self.request.target, drafter, decode_settings(self.costs.get(name or "")), coupled=coupled
        )
        try:
            return self.stack.enter_context(decoder)
        except As2dError as error:
            self._note(f"no coupled baselines with {name}: {error.message}")
            return None

    def _keep(self, trial: Trial) -> None:
        self.results.trials.append(trial)
        self.hooks.line(trial_line(trial, self.results.provenance))

    def _note(self, text: str) -> None:
        self.results.notes.append(text)
        self.hooks.note(text)

    def _explain(self, modes: Sequence[Mode]) -> None:
        """Say what the reader of the tables must know; no need to tell it at once."""
        names = {mode.name for mode in modes}
        self.results.notes += [
            text
            for text, holds in (
                (SPECASR_NOTE, "specasr-asp" in names),
                (COUPLED_NOTE, "async-coupled" in names),
                (EVERY_WINDOW_NOTE, True),
            )
            if holds
        ]

    def _replay(self, windows: Sequence[BenchWindow], spec: TargetSpec, auto: DraftPlan) -> None:
        trials, request = self.results.trials, self.request
        languages = {trial.window: trial.language for trial in trials if trial.mode == trials[0].mode}
        recorded: dict[str, Recorded] = {}
        for drafter in request.drafters:
            name = drafter.entry.name
            if name not in self.costs:
                continue
            try:
                drafts = record_drafts(request.target, drafter, spec, windows, languages)
                recorded[name] = Recorded(drafts, self.costs[name], drafter.threads)
            except As2dError as error:
                self._note(f"{name} is not in the replay: {error.message}")
        if recorded:
            known = auto if auto.drafter in recorded else DraftPlan(False, "not in the replay")
            self.results.oracle = verdicts(trials, recorded, spec, request.target.threads, known)


def _references(windows: Sequence[BenchWindow]) -> dict[str, tuple[str, str | None]]:
    """Return the known texts of the files of which every window was decoded."""
    return {
        str(window.clip.path): (window.clip.text, window.clip.language)
        for window in windows
        if window.last and window.clip.text
    }
