"""An engine on a node of a cluster: it is given pieces and sends back what becomes of them.

Everything that a run on one machine has is here, too: the node's cache, its profile, both processes. What it
is asked it answers in order; errors are told as data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from as2d_cli.audio.stream import claimed_s
from as2d_cli.batch.display import Display
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.resume import Stamp, stamp_of
from as2d_cli.batch.session import open_session
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import (
    LONG_S,
    Body,
    Broken,
    DecodedFile,
    DecodedWindow,
    FoundLong,
    HeardWindows,
    Loaded,
    Sent,
    WindowPiece,
)
from as2d_cli.domain.errors import As2dError, PluginError
from as2d_cli.domain.types import Request
from as2d_cli.engine.comparison import Comparison
from as2d_cli.engine.engine import WindowTask
from as2d_cli.engine.measure import peak_bytes, peak_bytes_of
from as2d_cli.engine.slots import unlink_own
from as2d_cli.system.addresses import address

_MAY_BE_LONG_BYTES = 1_000_000
"""Smaller files are not asked for their length: `LONG_S` would be less than 7 kbit/s."""
_FAR_LONG_BYTES = 16_000_000
"""Larger files far away are taken to be long, as asking would fetch them: `LONG_S` at 107 kbit/s."""


class _Notes(Display):
    """Keeps what there is to tell."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def note(self, line: str) -> None:
        self._lines.append(line)

    def taken(self) -> tuple[str, ...]:
        """Return the lines since the last time."""
        lines, self._lines = tuple(self._lines), []
        return lines


class EngineActor:
    """One engine. Its methods are called one after the other, but for `end`."""

    def __init__(self, asked: BatchRequest) -> None:
        """Nothing is loaded yet."""
        self._asked = asked
        self._notes = _Notes()
        self._stack = ExitStack()

    def load(self, wanted: str) -> Loaded | As2dError:
        """Load the models, fetching and measuring them first where this node has not done so.

        `wanted` is the version of as2d that sends the work, which only the same one takes.
        """
        if (have := version("as2d")) != wanted:
            return PluginError(f"as2d {have} is installed there, here {wanted}")
        try:
            self._session = self._stack.enter_context(open_session(self._asked, self._notes))
        except As2dError as error:
            return error
        engine = self._session.engine
        return Loaded(
            self._session.request,
            engine.target_spec,
            self._session.plan,
            self._session.load_s,
            peak_bytes() + sum(peak_bytes_of(process) or 0 for process in engine.process_ids),
            self._notes.taken(),
        )

    def files(self, *items: Item) -> Iterator[Sent]:
        """Decode whole files; of one that is long only say so."""
        yield from self._told(self._decoded(items))

    def windows(self, piece: WindowPiece, heard: HeardWindows) -> Iterator[Sent]:
        """Decode those windows of a long file that are in the piece, of all that were read with them."""
        request = self._request(piece.question)
        request = request.in_language(piece.language) if piece.language else request
        engine, pipeline = self._session.engine, self._session.pipeline
        group = pipeline.new_group()
        tasks = [
            WindowTask(group, window, request, result)
            for window, result in heard
            if window.index in piece.indexes
        ]
        yield from self._told(
            DecodedWindow(
                piece.number,
                one.task.window.index,
                one.task.window.span,
                one.result,
                one.error,
                one.task.known_result is not None,
                engine.is_drafting,
                self._found(piece.number),
            )
            for one in pipeline.decode(tasks)
        )

    def _found(self, number: int) -> Comparison:
        """Return what comparing the last windows, of that file, came to."""
        compared = self._session.compared
        return compared.taken(number) if compared else Comparison()

    def _request(self, question: str | None) -> Request:
        """Return what is asked of every window of a file."""
        if question is None:
            return self._session.request
        return Request(task="ask", language=self._asked.language, question=question)

    def _told(self, bodies: Iterator[Body]) -> Iterator[Sent]:
        try:
            for body in bodies:
                yield self._sent(body)
        except As2dError as error:
            broken = self._sent(Broken(error))
            self._stack.close()  # before it is told, at which this process is killed
            yield broken

    def end(self) -> None:
        """Leave nothing that would outlive a kill, whatever is going on; called beside the others."""
        unlink_own()

    def _sent(self, body: Body) -> Sent:
        engine = self._session
        return Sent(body, engine.is_drafter_lost, engine.paused_windows, self._notes.taken())

    def _decoded(self, items: Sequence[Item]) -> Iterator[Body]:
        for question, same in groupby(items, lambda item: item.question):
            yield from self._decoded_as(self._request(question), list(same))

    def _decoded_as(self, request: Request, items: Sequence[Item]) -> Iterator[Body]:
        short: list[tuple[Item, Stamp | None]] = []
        long: list[FoundLong] = []
        found: defaultdict[int, Comparison] = defaultdict(Comparison)
        for work, window in self._session.pipeline.events(self._sources(items, short, long), request):
            item, stamp = short[work.number]
            if window is not None:
                found[work.number] += self._found(item.number)
                continue
            content, both = item.content(stamp, work), found[work.number]
            work.number, work.source = item.number, item.input.path
            yield DecodedFile(item.number, work, content, both)
        yield from long

    def _sources(
        self, items: Sequence[Item], short: list[tuple[Item, Stamp | None]], long: list[FoundLong]
    ) -> Iterator[Path | BinaryIO]:
        """Yield what to read, when it is about to be read, and keep account of what that was."""
        for item in items:
            opened = item.opened()
            stamp = stamp_of(opened)
            if stamp is not None and _is_long(opened, stamp[0]):
                long.append(FoundLong(item.number))
                continue
            short.append((item, stamp))
            yield opened.source


def _is_long(given: Input, size: int) -> bool:
    """Tell whether a file is to be divided."""
    if given.stream is None and address(given.path) is not None:
        return size >= _FAR_LONG_BYTES
    return size >= _MAY_BE_LONG_BYTES and claimed_s(given.source) > LONG_S
