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
from as2d_cli.batch.local import start_local
from as2d_cli.batch.outputs import PendingFile, PendingFiles, clear_remains, plan_outputs
from as2d_cli.batch.overlap import overlapped
from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.report import RunReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.resume import Content
from as2d_cli.batch.work import Decoded, Executor, FileOutcome, Item, StartExecutor
from as2d_cli.domain.errors import OutputError
from as2d_cli.domain.types import Request, WindowResult
from as2d_cli.engine.messages import Progress
from as2d_cli.engine.slots import sweep_memory
from as2d_cli.models import loader
from as2d_cli.profile.run_costs import DraftSums
from as2d_cli.system.addresses import address
from as2d_cli.system.printable import printable
from as2d_cli.transcripts.subtitles import lay_out

_FAR_AT_ONCE = 8


class BatchRun:
    """One run. `report` can be asked for at any time, also after an interruption."""

    def __init__(
        self, request: BatchRequest, display: Display | None = None, start: StartExecutor = start_local
    ) -> None:
        """Decide what is to be written; `start` starts what decodes it.

        Raises `RequestError`, before any work.
        """
        self._request = request
        self._start = start
        self._display = display or Display()
        self._files = PendingFiles(request)
        infix = f".{request.translate_to}" if request.translate_to else ""
        self._outputs = plan_outputs(request.inputs, request.formats, request.folder, infix)
        drafter = next(iter(request.able_drafters), None)
        unable = request.drafter if drafter is None else None
        self._report = RunReport(
            request.target.name,
            drafter.name if drafter else None,
            refused=f"{unable.name} cannot {request.task}" if unable else None,
            files=len(self._outputs),
        )
        self._began: float | None = None
        self._executor: Executor | None = None
        self._window_request = Request()
        self._pending: list[PendingFile] = []
        self._finished: dict[int, FileOutcome] = {}  # by place in `_pending`, until their turn

    def run(self) -> Generator[FileOutcome, None, None]:
        """Yield what became of each source: first those with nothing to do, then the others in order.

        Close the generator to end the run early.

        Raises `ModelError`, `PluginError` or `RequestError` if there is no way to go on.
        """
        clear_remains(self._outputs)
        sweep_memory()  # a run with nothing to do starts no engine, which would do it
        for outputs in self._outputs:
            file = self._files.check(outputs)
            if isinstance(file, PendingFile):
                self._pending.append(file)
                continue
            self._count(file)
            yield file
            if self._stops_at(file):
                return
        if self._pending:
            yield from self._transcribe()

    def report(self, *, interrupted: bool = False) -> RunReport:
        """Return what has been done so far."""
        executor = self._executor
        comparison = executor.comparison if executor and self._request.compares else None
        nodes = executor.nodes if executor else ()
        wall_s = self._report.wall_s if self._began is None else time.perf_counter() - self._began
        return replace(
            self._report,
            draft_sums=executor.draft_sums if executor else DraftSums(),
            wall_s=comparison.drafted_s if comparison and not nodes else wall_s,
            comparison=comparison,
            differing=tuple(
                f"{printable(self._pending[number].source)} at {start_s:.1f} s"
                for number, start_s in (comparison.differing if comparison else ())
            ),
            interrupted=interrupted,
            nodes=nodes,
        )

    def _stops_at(self, outcome: FileOutcome) -> bool:
        """Note whether this outcome ends the run, and return it."""
        self._report.stopped = self._request.fail_fast and outcome.error is not None
        return self._report.stopped

    def _transcribe(self) -> Iterator[FileOutcome]:
        """Yield outcomes in order. What is finished before its turn is written and counted at once."""
        turn = 0
        decoded = self._decode()
        written = overlapped(decoded, self._write, self._keep, self._writes_at_once())
        with closing(decoded), closing(written):
            for _, outcome in written:
                stops = self._stops_at(outcome)
                while turn in self._finished:
                    self._display.file(self._pending[turn].source)
                    yield self._finished.pop(turn)
                    turn += 1
                if stops:
                    self._end()
                    break
        yield from (self._finished[number] for number in sorted(self._finished))

    def _writes_at_once(self) -> int:
        """Return how many files are written at a time: with many engines they would wait for a store."""
        is_far = any(address(path) for file in self._pending for _, path in file.outputs.files)
        return _FAR_AT_ONCE if is_far and self._request.cluster else 1

    def _decode(self) -> Generator[Decoded | None, None, None]:
        """Start the executor and yield what it makes of each file."""
        items = [Item(n, file.outputs.input, bool(file.formats)) for n, file in enumerate(self._pending)]
        left = replace(self._request, inputs=tuple(file.outputs.input for file in self._pending))
        with self._start(left, self._display) as executor:
            self._executor = executor
            first, self._report.load_s = executor.await_first()
            self._report.engines, self._report.threads = first.engines, first.threads
            if self._request.cluster is None:
                self._report.runs_as = loader.runs_as(self._request.target)
            self._window_request = first.request
            self._report.plan = executor.plan
            self._began = time.perf_counter()
            self._display.begin([file.source for file in self._pending])
            try:
                yield from executor.run(items, self._count_window)
            finally:
                self._end()  # to end engines takes time, too

    def _end(self) -> None:
        """Note that the last file is decoded and written, apart from what stores are still taking."""
        if self._began is not None:
            self._report.wall_s = time.perf_counter() - self._began
            self._began = None

    def _write(self, decoded: Decoded) -> tuple[int, FileOutcome]:
        """Write a file's outputs. Runs in a thread."""
        work, content = decoded
        return work.number, self._outcome(self._pending[work.number], work, content)

    def _outcome(self, file: PendingFile, work: FileWork, content: Content | None) -> FileOutcome:
        """Write a file's outputs. An input that can be read only once has no `content` to be recorded."""
        changed = ("changed while it was read: run this again",) if content and not content.sha256 else ()
        outcome = FileOutcome(file.source, stats=work.stats, warnings=(*work.warnings, *changed))
        if work.error is not None:
            return replace(outcome, error=work.error)
        drafter = self._report.drafter_at_work if work.drafting else None
        transcript = work.transcript(self._window_request, self._request.target.name, drafter)
        layout, until_s = self._request.layout, transcript.duration_s
        cues = lay_out(
            transcript.segments,
            layout,
            language=self._request.translate_to or transcript.language,
            until_s=until_s,
        )
        transcript = replace(transcript, cues=cues, highlights_words=layout.highlight_words)
        shown = transcript if self._request.keeps_words else transcript.without_words()
        if not self._request.word_timestamps:
            transcript = transcript.without_words()
        try:
            recipes = self._files.recipes if file.formats else {}
            written = file.outputs.write(transcript, file.formats, recipes, content)
        except OutputError as error:
            return replace(outcome, error=error)
        return replace(outcome, transcript=shown, written=written, kept=file.kept, notes=file.notes)

    def _keep(self, written: tuple[int, FileOutcome]) -> None:
        """Count a file that is written, and keep its outcome until its turn."""
        number, outcome = written
        self._count(outcome)
        self._finished[number] = outcome

    def _count(self, outcome: FileOutcome) -> None:
        report = self._report
        report.done += outcome.transcript is not None
        report.skipped += outcome.is_skipped
        report.failed += outcome.error is not None
        is_lost = self._executor is not None and self._executor.is_drafter_lost
        report.drafter_lost = is_lost and report.drafter is not None

    def _count_window(
        self, number: int, seconds: float, result: WindowResult | None, *, silent: bool
    ) -> None:
        """Count a window of a file that came back, with a result if it did not fail."""
        if result is not None:
            self._report.add_window(seconds, result, silent=silent)
            if self._request.cluster and not silent:  # an engine of this process tells more often by itself
                self._display.steps(Progress(number, result.stats.tokens, result.stats.steps))
        self._display.window(self._pending[number].source, seconds)
