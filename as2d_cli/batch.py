"""A run over many files.

What to write is settled first, models are loaded only if something is left to do, every finished file is
written whole, and one that fails does not stop the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from as2d_cli import fetch, weights
from as2d_cli.engine import Engine, EngineSettings, WindowOutcome
from as2d_cli.errors import As2dError, AudioError, OutputError, RequestError
from as2d_cli.languages import LANGUAGES
from as2d_cli.outputs import Outputs, plan
from as2d_cli.pipeline import FileWork, Pipeline
from as2d_cli.registry import ModelEntry
from as2d_cli.report import RunReport
from as2d_cli.sources import printable
from as2d_cli.types import DecodeStats, Request, Transcript
from as2d_cli.workers import DecodeSettings, ModelRef, Progress

DRAFTER_THREADS = 1


def usable_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """All that a run is asked for."""

    sources: tuple[Path, ...]
    target: ModelEntry
    drafter: ModelEntry | None = None
    language: str | None = None
    """Whisper language code, or None to detect it in each file."""
    timed: bool = False
    """Whether segments are wanted with times."""
    word_timestamps: bool = False
    """Whether segments keep their words and those their times."""
    formats: tuple[str, ...] = ()
    """Files to write for each source; none: no files."""
    folder: Path | None = None
    """Where to write them; None: beside the source."""
    overwrite: bool = False
    compare: bool = False
    threads: int = field(default_factory=usable_cpus)
    """Of the target; the drafter has one."""
    decode: DecodeSettings = field(default_factory=DecodeSettings)


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one source: a transcript, an error, or neither if it was skipped."""

    source: Path
    transcript: Transcript | None = None
    error: As2dError | None = None
    stats: DecodeStats = field(default_factory=DecodeStats)
    warnings: tuple[str, ...] = ()
    written: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    """Outputs that were there before and were left alone."""

    @property
    def is_skipped(self) -> bool:
        """Whether nothing was left to do."""
        return self.transcript is None and self.error is None


class Display:
    """What a run shows of its work. This one shows nothing; others override what they show."""

    def fetching(self) -> AbstractContextManager[fetch.Progress]:
        """Give the callback for fetching and converting one model."""
        return nullcontext(fetch.silent)

    def note(self, line: str) -> None:
        """Tell something the user may want to know."""

    def begin(self, sources: Sequence[Path]) -> None:
        """Take that work on these sources begins."""

    def steps(self, progress: Progress) -> None:
        """Take how far the window in work has come."""

    def window(self, source: Path, seconds: float) -> None:
        """Take that a window of `seconds` of this source is finished."""

    def file(self, source: Path) -> None:
        """Take that a source is finished."""


class Batch:
    """One run. `report` can be asked for at any time, also after an interruption."""

    def __init__(self, request: BatchRequest, display: Display | None = None) -> None:
        """Decide what is to be written. Raises `RequestError`, before any work."""
        self._request = request
        self._display = display or Display()
        self._plans = plan(request.sources, request.formats, request.folder)
        self._report = RunReport(
            request.target.name, request.drafter.name if request.drafter else None, files=len(self._plans)
        )
        self._began: float | None = None
        self._engine: Engine | None = None
        self._pipeline: Pipeline | None = None
        self._due: list[Outputs] = []

    def run(self) -> Generator[FileOutcome, None, None]:
        """Yield what became of each source: first those with nothing to do, then the others in order.

        Close the generator to end the run early.

        Raises `ModelError`, `PluginError` or `RequestError` if there is no way to go on.
        """
        for outputs in self._plans:
            settled = self._settled(outputs)
            if settled is None:
                self._due.append(outputs)
            else:
                yield self._counted(settled)
        if self._due:
            yield from self._transcribe(self._due)

    def report(self, *, interrupted: bool = False) -> RunReport:
        """Return what has been done so far."""
        found = self._pipeline.comparison if self._pipeline else None
        wall_s = self._report.wall_s if self._began is None else time.perf_counter() - self._began
        return replace(
            self._report,
            wall_s=found.drafted_s if found else wall_s,
            comparison=found,
            differing=tuple(
                f"{printable(str(self._due[number].source))} at {start_s:.1f} s"
                for number, start_s in (found.differing if found else ())
            ),
            interrupted=interrupted,
        )

    def _settled(self, outputs: Outputs) -> FileOutcome | None:
        """Return the outcome of a source that needs no work, or cannot have any."""
        source, name = outputs.source, printable(str(outputs.source))
        if not os.path.lexists(source):
            return FileOutcome(source, error=AudioError(f"{name}: no such file"))
        if source.is_dir():
            return FileOutcome(source, error=AudioError(f"{name}: is a folder", "give the files in it"))
        if outputs.error is not None:
            return FileOutcome(source, error=outputs.error)
        existing = outputs.existing
        if existing and len(existing) == len(outputs.files) and not self._request.overwrite:
            return FileOutcome(source, kept=existing)
        return None

    def _transcribe(self, due: Sequence[Outputs]) -> Iterator[FileOutcome]:
        asked = self._request
        settings = EngineSettings(
            self._model(asked.target, asked.threads),
            self._model(asked.drafter, DRAFTER_THREADS) if asked.drafter else None,
            asked.decode,
        )
        loading = time.perf_counter()
        with Engine(settings, note=self._display.note, progress=self._display.steps) as engine:
            self._engine = engine
            request = self._checked(engine.target_spec.languages)
            self._began = time.perf_counter()
            self._report = replace(self._report, load_s=self._began - loading)
            self._display.begin([outputs.source for outputs in due])
            self._pipeline = Pipeline(engine, request, compare=asked.compare, on_window=self._window)
            for work in self._pipeline.run(outputs.source for outputs in due):
                outcome = self._finished(due[work.number], work, request)
                self._display.file(work.path)
                yield self._counted(outcome)
            wall_s = time.perf_counter() - self._began
            self._report = replace(self._report, wall_s=wall_s)
            self._began = None

    def _model(self, entry: ModelEntry, threads: int) -> ModelRef:
        with self._display.fetching() as progress:
            return ModelRef(entry, weights.ensure(entry, progress), threads)

    def _checked(self, languages: Sequence[str]) -> Request:
        """Return the request for all windows. Raises `RequestError` for a language the model lacks."""
        language = self._request.language
        if language is None and len(languages) == 1:
            language = languages[0]
        if language is not None and language not in languages:
            known = ", ".join(LANGUAGES.get(code, code) for code in languages)
            raise RequestError(
                f"model {self._request.target.name!r} does not know {LANGUAGES.get(language, language)}",
                f"it knows: {known}",
            )
        wants_times = self._request.timed or self._request.word_timestamps
        return Request(language=language, word_times=wants_times)

    def _window(self, work: FileWork, outcome: WindowOutcome) -> None:
        seconds = outcome.task.window.duration_s
        if outcome.result is not None:
            self._report = replace(
                self._report,
                audio_s=self._report.audio_s + seconds,
                stats=self._report.stats + outcome.result.stats,
            )
        self._display.window(work.path, seconds)

    def _finished(self, outputs: Outputs, work: FileWork, request: Request) -> FileOutcome:
        """Write a file's outputs."""
        outcome = FileOutcome(work.path, stats=work.stats, warnings=tuple(work.warnings))
        if work.error is not None:
            return replace(outcome, error=work.error)
        drafter = self._report.drafter if self._engine and self._engine.is_drafting else None
        transcript = work.transcript(request, self._request.target.name, drafter)
        if not self._request.word_timestamps:
            bare = tuple(replace(segment, words=()) for segment in transcript.segments)
            transcript = replace(transcript, segments=bare)
        kept = () if self._request.overwrite else outputs.existing
        try:
            written = outputs.write(transcript, overwrite=self._request.overwrite)
        except OutputError as error:
            return replace(outcome, error=error)
        return replace(outcome, transcript=transcript, written=written, kept=kept)

    def _counted(self, outcome: FileOutcome) -> FileOutcome:
        lost = self._engine is not None and not self._engine.is_drafting
        self._report = replace(
            self._report,
            done=self._report.done + (outcome.transcript is not None),
            skipped=self._report.skipped + outcome.is_skipped,
            failed=self._report.failed + (outcome.error is not None),
            drafter_lost=lost and self._report.drafter is not None,
        )
        return outcome
