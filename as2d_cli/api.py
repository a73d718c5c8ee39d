"""Transcription for programs: `transcribe` for files in one call, `Transcriber` to keep the models loaded.

    from as2d_cli import Transcriber, transcribe

    for outcome in transcribe(["talks/", "extra.mp3"], language="de", word_timestamps=True):
        print(outcome.source, outcome.transcript.text if outcome.transcript else outcome.error)

    with Transcriber(language="en") as transcriber:
        for segment in transcriber.transcribe("talk.mp3"):  # each as soon as it is complete
            print(segment.start_s, segment.text)
        print(transcriber.transcribe(samples, 48_000).transcript.text)  # a NumPy array

Outcomes, transcripts and segments are frozen dataclasses: see `FileOutcome`, `Transcript` and `Segment`.
"""

from __future__ import annotations

import atexit
import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from as2d_cli.audio.sources import samples_as_file
from as2d_cli.batch.display import Display
from as2d_cli.batch.inputs import find_inputs
from as2d_cli.batch.local import LocalExecutor, start_local
from as2d_cli.batch.options import RunOptions, build_request, refuse_idle_overwrite, with_outputs
from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.run import BatchRun
from as2d_cli.batch.session import Session, open_session
from as2d_cli.batch.work import Executor, FileOutcome, StartExecutor
from as2d_cli.domain.errors import ModelError, RequestError
from as2d_cli.domain.languages import AUTO
from as2d_cli.domain.types import Segment, Transcript
from as2d_cli.system.addresses import located
from as2d_cli.system.streams import fill_closed
from as2d_cli.transcripts.speakers import SpeakerSegmenter

StrPath: TypeAlias = str | os.PathLike[str]
Audio: TypeAlias = "StrPath | BinaryIO | NDArray[Any]"


def _say_nothing(line: str) -> None:
    """Keep a note to itself."""


def transcribe(  # noqa: PLR0913 - one parameter per option of the command
    paths: StrPath | Iterable[StrPath],
    *,
    model: str | None = None,
    drafter: str | None = None,
    language: str | None = None,
    translate_to: str | None = None,
    prompt: str | None = None,
    hotwords: str | Sequence[str] = (),
    word_timestamps: bool = False,
    audio_track: int | str | None = None,
    channel: int | str | None = None,
    vad: bool = True,
    threads: int | None = None,
    output_formats: str | Sequence[str] = (),
    output_dir: StrPath | None = None,
    overwrite: bool = False,
    engine: str = "local",
    address: str | None = None,
    note: Callable[[str], None] = _say_nothing,
    **model_options: str | None,
) -> Generator[FileOutcome, None, None]:
    """Transcribe audio files one after the other; yield what became of each as soon as it is known.

    `paths` are files, folders and patterns as on the command line, `-` is standard input. With
    `output_formats` files are written as well, beside the inputs or below `output_dir`; inputs whose files
    are complete are then skipped, unless `overwrite`. The engine `"ray"` runs on the Ray cluster at
    `address`, or on one that it begins here. The other options are those of `Transcriber`. Lists may also be
    one text with commas, as on the command line.

    Each outcome has the `source`, a `transcript` (text, language, duration and timed segments; their words
    with `word_timestamps`) or an `error`, or neither if it was skipped. One bad file does not end the run.
    Close the generator to end it early. Models are fetched and loaded when the first outcome is asked for,
    and only if some file needs them.

    Raises, at the first outcome, as `Transcriber`.
    """
    transcriber = Transcriber(
        model=model,
        drafter=drafter,
        language=language,
        translate_to=translate_to,
        prompt=prompt,
        hotwords=hotwords,
        word_timestamps=word_timestamps,
        audio_track=audio_track,
        channel=channel,
        vad=vad,
        threads=threads,
        engine=engine,
        address=address,
        note=note,
        **model_options,
    )
    with transcriber:
        yield from transcriber.transcribe_files(
            paths, output_formats=output_formats, output_dir=output_dir, overwrite=overwrite
        )


class Transcriber:
    """Models that are loaded once and transcribe any number of recordings. Use as a context manager.

    They are loaded when they are first needed, or by `load`. There is one recording, or one run of files, at
    a time: another recording ends the one before; a run of files has to be finished or closed first.
    """

    def __init__(  # noqa: PLR0913 - one parameter per option of the command
        self,
        *,
        model: str | None = None,
        drafter: str | None = None,
        language: str | None = None,
        translate_to: str | None = None,
        prompt: str | None = None,
        hotwords: str | Sequence[str] = (),
        word_timestamps: bool = False,
        audio_track: int | str | None = None,
        channel: int | str | None = None,
        vad: bool = True,
        threads: int | None = None,
        engine: str = "local",
        address: str | None = None,
        note: Callable[[str], None] = _say_nothing,
        **model_options: str | None,
    ) -> None:
        """Choose the models; nothing is loaded yet.

        `model` and `drafter` are names of models.toml, by default the default pair; the drafter `"none"`
        decodes without drafts, which gives the same text. Without a `drafter`, a profile of this device
        decides whether drafts are used; the first time it is measured, for about 20 s. `language` is a
        Whisper code or an English name, None detects it in each recording; `translate_to` is the language to
        write in, None the one spoken. Windows are taken to follow `hotwords` and `prompt`; those in which
        nobody speaks are left out, unless `vad` is false. Segments have words with `word_timestamps`.
        `audio_track` is a number from 1 or a language, None takes the recording's default; `channel` is a
        number from 1, `"left"`, `"right"` or `"mix"`, None takes those in which somebody speaks, and `"each"`
        hears each by itself: segments are in the order of their starts, and have it as their `speaker`.
        `threads` are the target's, by default as many as there are CPUs. `note` is called with each line that
        the command would print for the user to know. `model_options` are those that plugins declare for their
        models, named as their flags in `as2d transcribe --help`.

        Raises `RequestError` for what makes no sense, `RegistryError` for an unknown model, `PluginError` for
        one whose plugin cannot be used.
        """
        options = RunOptions(
            given=frozenset(
                name for name, value in (("drafter", drafter), ("address", address)) if value is not None
            ),
            model=model,
            drafter=drafter,
            model_options=model_options,
            language=language or AUTO,
            to=translate_to,
            prompt=prompt,
            hotwords=hotwords if isinstance(hotwords, str) else ", ".join(hotwords),
            word_timestamps=word_timestamps,
            audio_track=None if audio_track is None else str(audio_track),
            channel=None if channel is None else str(channel),
            vad=vad,
            threads=threads,
            structured=True,
            engine=engine,
            address=address,
        )
        self._request = build_request(options)
        self._display = _Notes(note)
        self._stack = ExitStack()
        self._session: Session | None = None
        self._current: Transcription | None = None
        self._has_run = False  # of files, that is not finished

    def load(self) -> None:
        """Fetch and load the models now. Raises `ModelError`, `PluginError` or `RequestError`."""
        self._loaded()

    def transcribe(self, audio: Audio, sample_rate_hz: int | None = None) -> Transcription:
        """Begin one recording: a path, an open binary file, or samples with their rate.

        Samples are floats within [-1, 1] or integers of any width, of shape (n_samples,) or
        (n_samples, n_channels). Raises `RequestError` for what is none of these, or on a cluster; what
        `load` raises; what is wrong with the recording is raised by the `Transcription`.
        """
        source = _source(audio, sample_rate_hz)
        session = self._loaded()
        self._begin()
        self._current = Transcription(session, source, self._request, self.close)
        return self._current

    def transcribe_files(
        self,
        paths: StrPath | Iterable[StrPath],
        *,
        output_formats: str | Sequence[str] = (),
        output_dir: StrPath | None = None,
        overwrite: bool = False,
    ) -> Generator[FileOutcome, None, None]:
        """Transcribe files, folders and patterns, and write outputs; see the function `transcribe`."""
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        formats = output_formats.split(",") if isinstance(output_formats, str) else output_formats
        folder = None if output_dir is None else os.fspath(output_dir)
        request = with_outputs(self._request, formats if output_formats else (), folder, overwrite=overwrite)
        if overwrite:
            refuse_idle_overwrite(request)
        request = replace(request, inputs=find_inputs([os.fspath(path) for path in given]).found)
        self._begin()
        self._has_run = True
        try:
            start = executor_for(request) if request.cluster else self._executor
            fill_closed()
            yield from _ended_at_exit(BatchRun(request, self._display, start).run())
        except ModelError:
            self.close()
            raise
        finally:
            self._has_run = False

    def close(self) -> None:
        """Stop the models and free their memory; they are loaded anew when they are next needed."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Transcriber:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None and self._current is not None and not self._current.is_finished:
            session.engine.close(at_once=True)  # nobody waits for what is in work
        self._current = None
        self._stack.__exit__(kind, error, trace)

    def _begin(self) -> None:
        """End the recording in work. Raises `RequestError` while a run of files is."""
        if self._has_run:
            raise RequestError("a run of files is not finished", "finish it, or close its generator")
        if self._current is not None:
            self._current.close()

    def _loaded(self) -> Session:
        if self._request.cluster is not None:
            raise RequestError("a cluster takes files only", "use transcribe_files")
        if self._session is None:
            fill_closed()
            self._session = self._stack.enter_context(open_session(self._request, self._display))
            atexit.register(self.close)
            self._stack.callback(atexit.unregister, self.close)
        return self._session

    def _executor(self, request: BatchRequest, display: Display) -> AbstractContextManager[Executor]:
        """Start a run on the models that are kept."""
        return nullcontext(LocalExecutor(self._loaded()))


class Transcription:
    """One recording on its way: iterate it for its segments, each as soon as no later word can change it.

    `transcript` is all of it. Both raise `AudioError` if the recording cannot be read, `DecodeError` if a
    window cannot be decoded, `ModelError` if the models cannot be kept alive, and `RequestError` once this
    recording was ended before it was finished, as by beginning another one.
    """

    def __init__(
        self, session: Session, source: Path | BinaryIO, request: BatchRequest, lose: Callable[[], None]
    ) -> None:
        """Begin; nothing is read before the first segment is asked for. `lose` drops models that are dead."""
        self._session, self._request, self._lose = session, request, lose
        self._events = session.pipeline.events([source], session.request)
        self._segmenter = SpeakerSegmenter()
        self._segments: list[Segment] = []
        self._work: FileWork | None = None
        self.is_finished = False
        """Whether all of it is known."""

    def __iter__(self) -> Iterator[Segment]:
        """Yield the segments, those that are known first; may be asked again."""
        given = 0
        while given < len(self._segments) or self._advance():
            complete = self._segments[given:]
            given += len(complete)
            yield from complete

    @property
    def transcript(self) -> Transcript:
        """The whole recording: text, segments, language, duration."""
        while self._advance():
            pass
        work, request = self._finished(), self._request
        drafter = self._session.drafter if work.drafting else None
        transcript = work.transcript(self._session.request, request.target.name, drafter)
        return transcript if request.word_timestamps else transcript.without_words()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful about the recording or its text, one line each; asks for all of it first."""
        while self._advance():
            pass
        return tuple(self._finished().warnings)

    def close(self) -> None:
        """Give the recording up, unless it is finished."""
        self._events.close()

    def _advance(self) -> bool:
        """Take what comes next; return whether there was anything."""
        try:
            event = next(self._events, None)
        except ModelError:
            self._lose()
            raise
        if event is None:
            self._finished()
            return False
        self._work, window = event
        if self._work.error is not None:
            self.close()
            raise self._work.error
        if window is None:
            self.is_finished = True
            self._segments += map(self._shown, self._segmenter.finish())
        elif window.result is not None:
            complete = self._segmenter.add(window.task.window.span, window.result)
            self._segments += map(self._shown, complete)
        return True

    def _shown(self, segment: Segment) -> Segment:
        return segment if self._request.word_timestamps else segment.without_words()

    def _finished(self) -> FileWork:
        """Return the file once it is finished. Raises its error, or `RequestError` if it was given up."""
        if self._work is not None and self._work.error is not None:
            raise self._work.error
        if self._work is None or not self.is_finished:
            raise RequestError(
                "this recording was ended before it was finished", "finish one before the next"
            )
        return self._work


class _Notes(Display):
    """Passes notes to a program; shows no progress."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    def note(self, line: str) -> None:
        self._note(line)


def _source(audio: Audio, sample_rate_hz: int | None) -> Path | BinaryIO:
    """Return what can be opened. Raises `RequestError`."""
    if isinstance(audio, str | os.PathLike):
        return located(os.fspath(audio))
    if isinstance(audio, np.ndarray):
        if sample_rate_hz is None:
            raise RequestError("samples need their rate", "pass sample_rate_hz, e.g. 16_000")
        return samples_as_file(audio, sample_rate_hz)
    if isinstance(audio, io.TextIOBase) or not hasattr(audio, "read"):
        raise RequestError(f"{type(audio).__name__} is no audio", "pass a path, a binary file or an array")
    return audio


def executor_for(request: BatchRequest) -> StartExecutor:
    """Return what starts the engines that a request is for: one here, or those of a Ray cluster."""
    if request.cluster is None:
        return start_local
    from as2d_cli.cluster.executor import start_ray  # here: only a cluster needs Ray

    return start_ray


def _ended_at_exit(outcomes: Generator[FileOutcome, None, None]) -> Generator[FileOutcome, None, None]:
    """Yield them; end a run that a program leaves open when it exits, while Python can still do so."""

    def end() -> None:
        with suppress(ValueError):  # at work in another thread
            outcomes.close()

    atexit.register(end)
    try:
        yield from outcomes
    finally:
        atexit.unregister(end)
