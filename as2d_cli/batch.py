"""A run over many files.

What to write is settled first, what earlier runs completed is left out, models are loaded only if something
is left to do, every finished file is written whole, and one that fails does not stop the rest.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from as2d_cli import plugins
from as2d_cli.agenda import Agenda, Due, clear_remains
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.display import Display
from as2d_cli.engine import Engine, WindowOutcome
from as2d_cli.errors import OutputError, RequestError
from as2d_cli.guard import DraftGuard
from as2d_cli.languages import LANGUAGES
from as2d_cli.loading import Models, loaded
from as2d_cli.messages import ModelRef
from as2d_cli.outputs import plan
from as2d_cli.pipeline import FileWork, Pipeline
from as2d_cli.printable import printable
from as2d_cli.registry import cannot
from as2d_cli.report import RunReport
from as2d_cli.requests import BatchRequest, FileOutcome
from as2d_cli.resume import Stamp, content_of, stamp_of
from as2d_cli.subtitles import lay_out
from as2d_cli.types import Request, Transcript


class Batch:
    """One run. `report` can be asked for at any time, also after an interruption."""

    def __init__(self, request: BatchRequest, display: Display | None = None) -> None:
        """Decide what is to be written. Raises `RequestError`, before any work."""
        self._request = request
        self._display = display or Display()
        self._agenda = Agenda(request)
        infix = f".{request.translate_to}" if request.translate_to else ""
        self._plans = plan(request.inputs, request.formats, request.folder, infix)
        self._drafter = next(iter(request.able_drafters), None)
        unable = request.drafter if self._drafter is None else None
        self._report = RunReport(
            request.target.name,
            self._drafter.name if self._drafter else None,
            refused=f"{unable.name} cannot {request.task}" if unable else None,
            files=len(self._plans),
        )
        self._began: float | None = None
        self._engine: Engine | None = None
        self._pipeline: Pipeline | None = None
        self._guard: DraftGuard | None = None
        self._due: list[Due] = []
        self._stamps: dict[int, Stamp | None] = {}

    def run(self) -> Generator[FileOutcome, None, None]:
        """Yield what became of each source: first those with nothing to do, then the others in order.

        Close the generator to end the run early.

        Raises `ModelError`, `PluginError` or `RequestError` if there is no way to go on.
        """
        clear_remains(self._plans)
        for outputs in self._plans:
            settled = self._agenda.settle(outputs)
            if isinstance(settled, Due):
                self._due.append(settled)
            else:
                yield self._counted(settled)
                if self._is_over(settled):
                    return
        if self._due:
            yield from self._transcribe(self._due)

    def report(self, *, interrupted: bool = False) -> RunReport:
        """Return what has been done so far."""
        found = self._pipeline.comparison if self._pipeline else None
        wall_s = self._report.wall_s if self._began is None else time.perf_counter() - self._began
        return replace(
            self._report,
            paused_windows=self._guard.paused_windows if self._guard else 0,
            wall_s=found.drafted_s if found else wall_s,
            comparison=found,
            differing=tuple(
                f"{printable(str(self._due[number].source))} at {start_s:.1f} s"
                for number, start_s in (found.differing if found else ())
            ),
            interrupted=interrupted,
        )

    def _is_over(self, outcome: FileOutcome) -> bool:
        over = self._request.fail_fast and outcome.error is not None
        self._report = replace(self._report, stopped=over)
        return over

    def _transcribe(self, due: Sequence[Due]) -> Iterator[FileOutcome]:
        asked = self._request
        wanted = Models(
            asked.target,
            self._drafter,
            asked.threads,
            others=asked.able_drafters[1:],
            auto_budget=asked.auto_budget,
            memory_limit_bytes=asked.memory_limit_bytes,
            decode=asked.decode,
        )
        with loaded(wanted, self._display) as models:
            engine = self._engine = models.engine
            request = self._checked(engine.target_spec)
            self._check_prompt(models.target, engine.target_spec.max_prompt_tokens)
            budget = models.settle()
            if budget is not None:
                self._guard = DraftGuard(budget.plain) if budget.drafting and budget.plain else None
            self._began = time.perf_counter()
            self._report = replace(self._report, budget=budget, load_s=self._began - models.began)
            self._display.begin([one.source for one in due])
            self._pipeline = Pipeline(
                engine,
                request,
                compare=asked.compare and self._drafter is not None,
                vad=asked.vad,
                guard=self._guard,
                on_window=self._window,
            )
            for work in self._pipeline.run(self._opened(due)):
                outcome = self._finished(due[work.number], work, request)
                self._display.file(outcome.source)
                yield self._counted(outcome)
                if self._is_over(outcome):
                    break
            wall_s = time.perf_counter() - self._began
            self._report = replace(self._report, wall_s=wall_s)
            self._began = None

    def _opened(self, due: Sequence[Due]) -> Iterator[Path | BinaryIO]:
        """Yield what to read, when it is about to be read."""
        for number, one in enumerate(due):
            self._stamps[number] = stamp_of(one.outputs.input)
            yield one.outputs.input.source

    def _checked(self, spec: TargetSpec) -> Request:
        """Return the request for all windows. Raises `RequestError` for what is beyond the model."""
        languages, language = spec.languages, self._request.language
        if self._request.task not in spec.tasks:
            raise cannot(self._request.target.name, self._request.task)
        to = self._request.translate_to or "en"
        if to not in spec.translates_to:
            known = ", ".join(LANGUAGES.get(code, code) for code in spec.translates_to)
            raise RequestError(
                f"model {self._request.target.name!r} does not translate to {LANGUAGES.get(to, to)}",
                f"it translates to: {known}",
            )
        if language is None and len(languages) == 1:
            language = languages[0]
        if language is not None and language not in languages:
            known = ", ".join(LANGUAGES.get(code, code) for code in languages)
            raise RequestError(
                f"model {self._request.target.name!r} does not know {LANGUAGES.get(language, language)}",
                f"it knows: {known}",
            )
        wants_times = self._request.timed or self._request.word_timestamps
        return Request(
            self._request.task, language, word_times=wants_times, prompt=self._request.prompt, to=to
        )

    def _check_prompt(self, target: ModelRef, allowed: int) -> None:
        """Raise `RequestError` if the prompt is too long: cut short it would not be what was asked for."""
        prompt = self._request.prompt
        if prompt is None:
            return
        if not allowed:
            raise RequestError(
                f"model {target.entry.name!r} takes no prompt", "leave out prompt and hotwords"
            )
        tokens = len(plugins.load_tokenizer(target.entry, target.path).encode(f" {prompt}"))
        if tokens > allowed:
            raise RequestError(
                f"prompt and hotwords are {tokens} tokens, model {target.entry.name!r} takes {allowed}",
                "shorten them",
            )

    def _window(self, work: FileWork, outcome: WindowOutcome) -> None:
        seconds = outcome.task.window.duration_s
        if outcome.result is not None:
            self._report = replace(
                self._report,
                audio_s=self._report.audio_s + seconds,
                stats=self._report.stats + outcome.result.stats,
                predicted_plain_s=self._report.predicted_plain_s + self._predicted_s(outcome),
                silent_windows=self._report.silent_windows + (outcome.task.settled is not None),
                doubtful_windows=self._report.doubtful_windows + outcome.result.is_doubtful,
            )
        self._display.window(self._due[work.number].source, seconds)

    def _predicted_s(self, outcome: WindowOutcome) -> float:
        """Return what the profile says that a decoded window takes without drafts."""
        budget, result = self._report.budget, outcome.result
        if budget is None or budget.plain is None or result is None or outcome.task.settled:
            return 0.0
        return budget.plain.window_s(result.stats)

    def _finished(self, due: Due, work: FileWork, request: Request) -> FileOutcome:
        """Write a file's outputs."""
        outcome = FileOutcome(due.source, stats=work.stats, warnings=tuple(work.warnings))
        if work.error is not None:
            return replace(outcome, error=work.error)
        drafter = self._report.drafter if self._engine and self._engine.is_drafting else None
        transcript = work.transcript(request, self._request.target.name, drafter)
        transcript = replace(transcript, cues=lay_out(transcript.segments, self._request.layout))
        if not self._request.word_timestamps:
            bare = tuple(replace(segment, words=()) for segment in transcript.segments)
            transcript = replace(transcript, segments=bare)
        try:
            written = self._written(due, work, transcript)
        except OutputError as error:
            return replace(outcome, error=error)
        return replace(outcome, transcript=transcript, written=written, kept=due.kept, notes=due.notes)

    def _written(self, due: Due, work: FileWork, transcript: Transcript) -> tuple[Path, ...]:
        """Write what is due. An input that changed while it was read is not recorded as done."""
        if not due.formats:
            return ()
        content = content_of(due.outputs.input, self._stamps.pop(work.number))
        return due.outputs.write(transcript, due.formats, self._agenda.recipes, content)

    def _counted(self, outcome: FileOutcome) -> FileOutcome:
        budget = self._report.budget
        lost = self._engine is not None and not self._engine.is_drafting and (not budget or budget.drafting)
        self._report = replace(
            self._report,
            done=self._report.done + (outcome.transcript is not None),
            skipped=self._report.skipped + outcome.is_skipped,
            failed=self._report.failed + (outcome.error is not None),
            drafter_lost=lost and self._report.drafter is not None,
        )
        return outcome
