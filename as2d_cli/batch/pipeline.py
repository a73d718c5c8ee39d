"""From audio files to transcripts: one stream of windows through the engine, files put together again.

Windows of the next files are handed out while the current one is still in work, so that reading,
features and drafting run ahead. Nothing here writes files or knows a terminal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.tracks import EACH, NO_CHOICE, AudioChoice
from as2d_cli.audio.vad import SpeechDetector
from as2d_cli.audio.windows import split, split_apart
from as2d_cli.domain.errors import As2dError, AudioError
from as2d_cli.domain.types import DecodeStats, Request, Span, Transcript, Window, WindowResult
from as2d_cli.engine.comparison import Compared
from as2d_cli.engine.engine import Engine
from as2d_cli.engine.scheduler import Guard, WindowOutcome, WindowTask
from as2d_cli.transcripts.segments import join_texts
from as2d_cli.transcripts.speakers import segment

NOTHING_SAID = WindowResult("", (), None)
"""What becomes of a window in which nobody speaks."""
_NEAR_SILENCE = 1e-3
"""Recordings of an empty room are below this level, 60 dB under full scale."""


@dataclass(slots=True)
class FileWork:
    """One input file on its way: filled while its windows come back."""

    source: Path | BinaryIO
    number: int = 0
    """Its place among the files that were given with it."""
    parts: list[tuple[Span, WindowResult]] = field(default_factory=list)
    handed_out: int = 0
    returned: int = 0
    read: bool = False
    """Whether all of its audio has been handed out."""
    duration_s: float = 0.0
    sha256: str | None = None
    """Of the file, if it came from far away."""
    warnings: list[str] = field(default_factory=list)
    silent_windows: int = 0
    """Windows without speech, which were not decoded."""
    loudness: float = 0.0
    """Of its loudest window so far: root mean square, full scale at 1."""
    error: As2dError | None = None
    drafting: bool = False
    """Whether the engine that decoded it had a drafter to the end."""

    @property
    def finished(self) -> bool:
        """Whether nothing more will come."""
        return self.read and self.handed_out == self.returned

    @property
    def stats(self) -> DecodeStats:
        """Summed over its windows."""
        return sum((result.stats for _, result in self.parts), DecodeStats())

    def transcript(self, request: Request, target: str, drafter: str | None) -> Transcript:
        """Put the windows together, those of channels that are heard apart by their times."""
        language = next((result.language for _, result in self.parts if result.language), None)
        segments = segment(self.parts, self.duration_s) if request.word_times else ()
        are_apart = any(segment.speaker for segment in segments)
        texts = (one.text for one in segments) if are_apart else (result.text for _, result in self.parts)
        return Transcript(
            text=join_texts(texts),
            segments=segments,
            language=language,
            duration_s=self.duration_s,
            target=target,
            drafter=drafter,
            task=request.task,
        )

    def take(
        self, place: Span, result: WindowResult | None, error: As2dError | None, *, silent: bool
    ) -> None:
        """Note what became of a window, the next in order: a result, or an error that spoils the file."""
        self.returned += 1
        if result is None:
            self.error = self.error or error
            return
        self.parts.append((place, result))
        self.silent_windows += silent
        if result.looped or result.unfinished:
            self.warnings.append(_doubt(place, result))
        self.warnings += map(_left_out, result.left_out)

    def conclude(self) -> None:
        """Add what can be told only of a whole file."""
        if self.error is None and self.silent_windows == self.returned:
            way_out = "; --no-vad decodes it all the same" if self.loudness > _NEAR_SILENCE else ""
            self.warnings.append(f"no speech found: the transcript is empty{way_out}")


class Pipeline:
    """Takes files through one engine, any number of times."""

    def __init__(
        self,
        engine: Engine,
        *,
        compared: Compared | None = None,
        vad: bool = True,
        guard: Guard | None = None,
        choice: AudioChoice = NO_CHOICE,
    ) -> None:
        """With `compared`, of the same engine, every window goes both ways. What differs is found there.

        With `vad`, windows in which nobody speaks are not decoded, and say nothing. A `guard` decides
        from window to window whether to draft.
        """
        self._engine = engine
        self._guard = guard
        self._choice = choice
        self._compared = compared
        self._speech = SpeechDetector() if vad else None
        self._groups = 0

    def run(self, sources: Iterable[Path | BinaryIO], request: Request) -> Iterator[FileWork]:
        """Yield each file once it is finished. As `events` in all else."""
        return (work for work, window in self.events(sources, request) if window is None)

    def events(
        self, sources: Iterable[Path | BinaryIO], request: Request
    ) -> Generator[tuple[FileWork, WindowOutcome | None], None, None]:
        """Yield each window that comes back, with its file; with None instead, each file that is finished.

        Windows and files come in the order given. A file that cannot be read, or of which a window cannot be
        decoded, carries its error. Raises `ModelError` if the target cannot be kept alive, or the speech
        detector not be loaded.
        """
        files: deque[FileWork] = deque()
        first = self._groups
        for outcome in self.decode(self._tasks(sources, request, files)):
            work, task = files[outcome.task.group - first], outcome.task
            work.take(task.window.span, outcome.result, outcome.error, silent=task.known_result is not None)
            yield work, outcome
            while files and files[0].finished:
                first += 1
                yield self._concluded(files.popleft()), None
        for work in files:
            yield self._concluded(work), None

    def decode(self, tasks: Iterable[WindowTask]) -> Iterator[WindowOutcome]:
        """Decode windows, both ways if they are compared; note speech without words. Raises as `events`."""
        compared = self._compared
        outcomes = compared.run(tasks) if compared else self._engine.run(tasks, guard=self._guard)
        return map(self._checked, outcomes)

    def new_group(self) -> int:
        """Return a number for the windows of another file: what the engine knows of a file goes by it."""
        self._groups += 1
        return self._groups - 1

    def _concluded(self, work: FileWork) -> FileWork:
        work.conclude()
        work.drafting = self._engine.is_drafting
        return work

    def _tasks(
        self, sources: Iterable[Path | BinaryIO], request: Request, files: deque[FileWork]
    ) -> Iterator[WindowTask]:
        for number, source in enumerate(sources):
            work, group = FileWork(source, number), self.new_group()
            files.append(work)
            try:
                with closing(windows_of(work, self._choice)) as windows:
                    for window in windows:
                        if work.error is not None:  # failed meanwhile: not read to its end
                            break
                        work.handed_out += 1
                        yield WindowTask(group, window, request, known_result(self._speech, window))
            except AudioError as error:
                work.error = error
            work.read = True

    def _checked(self, outcome: WindowOutcome) -> WindowOutcome:
        """Return the outcome with the places where somebody speaks and no word is written.

        Models may end a window's text early. Raises `ModelError` if the speech detector cannot be loaded.
        """
        task, result = outcome.task, outcome.result
        if self._speech is None or result is None or result.is_doubtful or task.known_result is not None:
            return outcome
        if task.request.task != "transcribe" or (result.text and not result.words):  # times are not known
            return outcome
        left_out = self._speech.left_out(task.window, result.words)
        return replace(outcome, result=replace(result, left_out=left_out)) if left_out else outcome


def known_result(speech: SpeechDetector | None, window: Window) -> WindowResult | None:
    """Return the result of a window that needs no model."""
    return None if speech is None or speech.hears_speech(window.samples) else NOTHING_SAID


def windows_of(work: FileWork, choice: AudioChoice = NO_CHOICE) -> Generator[Window, None, None]:
    """Yield the windows of a file, and note what can be told of it once it is read. Raises `AudioError`."""
    stream = open_audio(work.source, choice)
    work.sha256 = stream.sha256
    try:
        for window in (split_apart if choice.channel == EACH else split)(stream.blocks()):
            power = float(np.mean(np.square(window.samples)))
            work.loudness = max(work.loudness, power**0.5)
            yield window
        work.duration_s = stream.duration_s or 0.0
    finally:
        work.warnings += stream.warnings
        stream.close()


def _doubt(place: Span, result: WindowResult) -> str:
    """Return why somebody should check the text of a window."""
    found = ["repeats itself"] * result.looped + [
        "reached the model's limit before its end"
    ] * result.unfinished
    return f"the text {_where(place)} {' and '.join(found)}: check it"


def _left_out(place: Span) -> str:
    """Return where words may be missing."""
    return f"somebody speaks {_where(place)}, but no word was written: check it"


def _where(place: Span) -> str:
    channel = "" if place.channel is None else f" in channel {place.channel}"
    return f"from {place.start_s:.1f} s to {place.end_s:.1f} s{channel}"
