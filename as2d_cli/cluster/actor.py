"""An engine on a node of a cluster: decodes the pieces it is handed and sends back events.

It has all that a run on one machine has: the node's cache and profile, target and drafter in processes of
their own. Pieces are decoded in order; errors are sent as data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from as2d_cli.audio.stream import claimed_s
from as2d_cli.batch.display import Display
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.pipeline import FileWork
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.resume import Stamp, stamp_of
from as2d_cli.batch.session import open_session
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import (
    LONG_S,
    ActorMessage,
    Chunk,
    DecodedFile,
    DecodedWindow,
    EngineFailed,
    EngineStarted,
    Event,
    LongFileFound,
    WindowPiece,
)
from as2d_cli.domain.errors import As2dError, PluginError
from as2d_cli.engine.comparison import Comparison
from as2d_cli.engine.measure import peak_bytes, peak_bytes_of
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.engine.slots import unlink_own
from as2d_cli.system.addresses import address

_MAYBE_LONG_BYTES = 1_000_000
"""Smaller files are short, whatever they claim: `LONG_S` would be less than 7 kbit/s."""
_REMOTE_LONG_BYTES = 16_000_000
"""Larger remote files are taken to be long, as opening them would fetch them: `LONG_S` at 107 kbit/s."""


class _Notes(Display):
    """Keeps notes until they are sent."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def note(self, line: str) -> None:
        self._lines.append(line)

    def take(self) -> tuple[str, ...]:
        """Return the lines since the last time."""
        lines, self._lines = tuple(self._lines), []
        return lines


@dataclass
class _ShortFile:
    """A file in the pipeline."""

    item: Item
    stamp: Stamp | None
    comparison: Comparison = field(default_factory=Comparison)

    def decoded(self, work: FileWork) -> DecodedFile:
        """Return the finished work as the driver knows the file."""
        content = self.item.content(self.stamp, work)
        work.number, work.source = self.item.number, self.item.input.path
        return DecodedFile(self.item.number, work, content, self.comparison)


class _Sources:
    """What a pipeline reads of a piece: each file is opened when it is asked for, long files are left out."""

    def __init__(self, items: Sequence[Item]) -> None:
        """Take the files of a piece."""
        self._items = items
        self.short: list[_ShortFile] = []
        """Files that the pipeline has begun to read, in its order."""
        self.long: list[Item] = []
        """Files that were left out."""

    def __iter__(self) -> Iterator[Path | BinaryIO]:
        """Yield each source when it is about to be read: its stamp is to be taken just before."""
        for item in self._items:
            source = item.opened()
            stamp = stamp_of(source)
            if stamp is not None and _is_long(source, stamp[0]):
                self.long.append(item)
            else:
                self.short.append(_ShortFile(item, stamp))
                yield source.source


class EngineActor:
    """One engine. Ray calls its methods one after the other, except `end`, which runs beside them."""

    def __init__(self, batch_request: BatchRequest) -> None:
        """Load nothing yet."""
        self._batch_request = batch_request
        self._notes = _Notes()
        self._stack = ExitStack()

    def load(self, wanted: str) -> EngineStarted | As2dError:
        """Load the models, fetching and measuring them first where this node has not done so.

        `wanted` is the driver's version of as2d: another version here may not understand its pieces.
        """
        if (have := version("as2d")) != wanted:
            return PluginError(f"as2d {have} is installed there, here {wanted}")
        try:
            self._session = self._stack.enter_context(open_session(self._batch_request, self._notes))
        except As2dError as error:
            return error
        engine = self._session.engine
        return EngineStarted(
            self._session.request,
            engine.target_spec,
            self._session.plan,
            self._session.load_s,
            peak_bytes() + sum(peak_bytes_of(process) or 0 for process in engine.process_ids),
            self._notes.take(),
            self._session.threads,
        )

    def files(self, *items: Item) -> Iterator[ActorMessage]:
        """Decode whole files; long files are only reported."""
        yield from self._messages(self._decode_files(items))

    def windows(self, piece: WindowPiece, chunk: Chunk) -> Iterator[ActorMessage]:
        """Decode those windows of `chunk` that are in the piece."""
        yield from self._messages(self._decode_windows(piece, chunk))

    def end(self) -> None:
        """Leave no shared memory that would outlive a kill. May be called while a piece is decoded."""
        unlink_own()

    def _messages(self, events: Iterator[Event]) -> Iterator[ActorMessage]:
        try:
            for event in events:
                yield self._message(event)
        except As2dError as error:
            message = self._message(EngineFailed(error))
            self._stack.close()  # before the driver hears of it, and kills this process
            yield message

    def _message(self, event: Event) -> ActorMessage:
        session = self._session
        return ActorMessage(event, session.is_drafter_lost, session.draft_sums, self._notes.take())

    def _decode_files(self, items: Sequence[Item]) -> Iterator[Event]:
        for question, same in groupby(items, lambda item: item.question):
            sources = _Sources(tuple(same))
            for work, window in self._session.pipeline.events(sources, self._session.request_for(question)):
                file = sources.short[work.number]
                if window is None:
                    yield file.decoded(work)
                else:
                    file.comparison += self._take_comparison(file.item.number)
            for item in sources.long:
                yield LongFileFound(item.number)

    def _decode_windows(self, piece: WindowPiece, chunk: Chunk) -> Iterator[Event]:
        engine, pipeline = self._session.engine, self._session.pipeline
        group = pipeline.new_group()
        request = self._session.request_for(piece.question)
        request = request.in_language(piece.language) if piece.language else request
        tasks = [
            WindowTask(group, window, request, result)
            for window, result in chunk
            if window.index in piece.indexes
        ]
        for outcome in pipeline.decode(tasks):
            yield DecodedWindow(
                piece.number,
                outcome.task.window.index,
                outcome.task.window.span,
                outcome.result,
                outcome.error,
                outcome.task.known_result is not None,
                engine.is_drafting,
                self._take_comparison(piece.number),
            )

    def _take_comparison(self, number: int) -> Comparison:
        """Return what comparing the windows since the last time, all of the file `number`, came to."""
        compared = self._session.compared
        return compared.taken(number) if compared else Comparison()


def _is_long(source: Input, size_bytes: int) -> bool:
    """Tell whether a file is to be divided."""
    if source.stream is None and address(source.path) is not None:
        return size_bytes >= _REMOTE_LONG_BYTES
    return size_bytes >= _MAYBE_LONG_BYTES and claimed_s(source.source) > LONG_S
