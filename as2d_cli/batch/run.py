"""A run over many files.

What to write is settled first, what earlier runs completed is left out, models are loaded only if something
is left to do, every finished file is written whole, and one that fails does not stop the rest.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace

from as2d_cli.batch.display import Display
from as2d_cli.batch.local import local_executor
from as2d_cli.batch.outputs import plan
from as2d_cli.batch.overlap import overlapped
from as2d_cli.batch.pending import PendingFile, PendingFiles, clear_remains
from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.report import RunReport
from as2d_cli.batch.request import BatchRequest, FileOutcome
from as2d_cli.batch.resume import Content
from as2d_cli.batch.work import Decoded, Executor, Item, StartExecutor
from as2d_cli.domain.errors import OutputError
from as2d_cli.domain.types import Request, WindowResult
from as2d_cli.engine.messages import Progress
from as2d_cli.engine.slots import sweep_memory
from as2d_cli.system.addresses import address
from as2d_cli.system.printable import printable
from as2d_cli.transcripts.subtitles import lay_out

_FAR_AT_ONCE = 8


class Batch:
    """One run. `report` can be asked for at any time, also after an interruption."""

    def __init__(
        self, request: BatchRequest, display: Display | None = None, start: StartExecutor = local_executor
    ) -> None:
        """Decide what is to be written; `start` starts what decodes it.

        Raises `RequestError`, before any work.
        """
        self._request = request
        self._start = start
        self._display = display or Display()
        self._agenda = PendingFiles(request)
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
        self._engines: Executor | None = None
        self._wanted = Request()
        self._due: list[PendingFile] = []

    def run(self) -> Generator[FileOutcome, None, None]:
        """Yield what became of each source: first those with nothing to do, then the others in order.

        Close the generator to end the run early.

        Raises `ModelError`, `PluginError` or `RequestError` if there is no way to go on.
        """
        clear_remains(self._plans)
        sweep_memory()  # a run with nothing to do starts no engine, which would do it
        for outputs in self._plans:
            known = self._agenda.settle(outputs)
            if isinstance(known, PendingFile):
                self._due.append(known)
            else:
                yield self._counted(known)
                if self._is_over(known):
                    return
        if self._due:
            yield from self._transcribe()

    def report(self, *, interrupted: bool = False) -> RunReport:
        """Return what has been done so far."""
        engines = self._engines
        found = engines.comparison if engines and self._request.compares else None
        nodes = engines.nodes if engines else ()
        wall_s = self._report.wall_s if self._began is None else time.perf_counter() - self._began
        return replace(
            self._report,
            paused_windows=engines.paused_windows if engines else 0,
            wall_s=found.drafted_s if found and not nodes else wall_s,
            comparison=found,
            differing=tuple(
                f"{printable(self._due[number].source)} at {start_s:.1f} s"
                for number, start_s in (found.differing if found else ())
            ),
            interrupted=interrupted,
            nodes=nodes,
        )

    def _is_over(self, outcome: FileOutcome) -> bool:
        over = self._request.fail_fast and outcome.error is not None
        self._report = replace(self._report, stopped=over)
        return over

    def _transcribe(self) -> Iterator[FileOutcome]:
        """Yield outcomes in order. What is finished before its turn is written and counted at once."""
        early: dict[int, FileOutcome] = {}
        turn = 0

        def write(decoded: Decoded) -> tuple[int, FileOutcome]:
            return decoded[0].number, self._finished(self._due[decoded[0].number], *decoded)

        def keep(written: tuple[int, FileOutcome]) -> None:
            early[written[0]] = self._counted(written[1])

        decoded = self._decoded()
        with closing(decoded), closing(overlapped(decoded, write, keep, self._at_once())) as finished:
            for _, outcome in finished:
                over = self._is_over(outcome)
                while turn in early:
                    self._display.file(self._due[turn].source)
                    yield early.pop(turn)
                    turn += 1
                if over:
                    self._end()
                    break
        yield from (early[number] for number in sorted(early))

    def _at_once(self) -> int:
        """Return how many files are written at a time: with many engines they would wait for a store."""
        is_far = any(address(path) for one in self._due for _, path in one.outputs.files)
        return _FAR_AT_ONCE if is_far and self._request.cluster else 1

    def _decoded(self) -> Generator[Decoded | None, None, None]:
        items = [Item(number, one.outputs.input, bool(one.formats)) for number, one in enumerate(self._due)]
        with self._start(self._request, self._display) as engines:
            self._engines = engines
            first, load_s = engines.await_first()
            self._wanted = first.request
            self._began = time.perf_counter()
            self._report = replace(self._report, load_s=load_s, plan=engines.plan)
            self._display.begin([one.source for one in self._due])
            try:
                yield from engines.run(items, self._heard)
            finally:
                self._end()  # to end engines takes time, too

    def _end(self) -> None:
        """Note that the last file is decoded and written, apart from what stores are still taking."""
        if self._began is not None:
            self._report = replace(self._report, wall_s=time.perf_counter() - self._began)
            self._began = None

    def _heard(self, number: int, seconds: float, result: WindowResult | None, *, silent: bool) -> None:
        """Note that a window of a file came back, with a result if it did not fail."""
        if result is not None:
            self._report = replace(
                self._report,
                audio_s=self._report.audio_s + seconds,
                stats=self._report.stats + result.stats,
                predicted_plain_s=self._report.predicted_plain_s + self._predicted_s(result, silent=silent),
                silent_windows=self._report.silent_windows + silent,
                doubtful_windows=self._report.doubtful_windows + result.is_doubtful,
            )
            if self._request.cluster and not silent:  # an engine of this process tells more often by itself
                self._display.steps(Progress(number, result.stats.tokens, result.stats.steps))
        self._display.window(self._due[number].source, seconds)

    def _predicted_s(self, result: WindowResult, *, silent: bool) -> float:
        """Return what the profile says that a decoded window takes without drafts."""
        plan = self._report.plan
        return 0.0 if plan is None or plan.plain is None or silent else plan.plain.window_s(result.stats)

    def _finished(self, due: PendingFile, work: FileWork, content: Content | None) -> FileOutcome:
        """Write a file's outputs. An input that can be read only once has no `content` to be recorded."""
        changed = ("changed while it was read: run this again",) if content and not content.sha256 else ()
        outcome = FileOutcome(due.source, stats=work.stats, warnings=(*work.warnings, *changed))
        if work.error is not None:
            return replace(outcome, error=work.error)
        drafter = self._report.drafter if work.drafting else None
        transcript = work.transcript(self._wanted, self._request.target.name, drafter)
        transcript = replace(transcript, cues=lay_out(transcript.segments, self._request.layout))
        if not self._request.word_timestamps:
            bare = tuple(replace(segment, words=()) for segment in transcript.segments)
            transcript = replace(transcript, segments=bare)
        try:
            recipes = self._agenda.recipes if due.formats else {}
            written = due.outputs.write(transcript, due.formats, recipes, content)
        except OutputError as error:
            return replace(outcome, error=error)
        return replace(outcome, transcript=transcript, written=written, kept=due.kept, notes=due.notes)

    def _counted(self, outcome: FileOutcome) -> FileOutcome:
        lost = self._engines is not None and self._engines.is_drafter_lost
        self._report = replace(
            self._report,
            done=self._report.done + (outcome.transcript is not None),
            skipped=self._report.skipped + outcome.is_skipped,
            failed=self._report.failed + (outcome.error is not None),
            drafter_lost=lost and self._report.drafter is not None,
        )
        return outcome
