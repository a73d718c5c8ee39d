"""Reads a long file once, and gives out its windows for engines to share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from as2d_cli.audio.vad import SpeechDetector
from as2d_cli.batch.pipeline import FileWork, known_result, windows_of
from as2d_cli.batch.resume import stamp_of
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import RUN_WINDOWS, End, HeardWindows, Run
from as2d_cli.domain.errors import As2dError


def read_long(item: Item, vad: bool) -> Iterator[Run | HeardWindows | End]:
    """Yield each run of windows, announced beforehand, then the end.

    The first run goes no further than to the first window in which somebody speaks: on that may depend in
    which language all others are taken.
    """
    speech = SpeechDetector() if vad else None
    opened = item.opened()
    stamp = stamp_of(opened)
    work = FileWork(opened.source, item.number)
    heard: HeardWindows = []
    spoken = False
    try:
        with closing(windows_of(work)) as windows:
            for window in windows:
                heard.append((window, known_result(speech, window)))
                begins = not spoken and heard[-1][1] is None
                if begins or len(heard) == RUN_WINDOWS:
                    yield from _announced(heard)
                    heard = []
                spoken = spoken or begins
    except As2dError as error:
        work.error = error
    if heard:
        yield from _announced(heard)
    yield End(work.duration_s, tuple(work.warnings), work.error, item.content(stamp, work))


def _announced(heard: HeardWindows) -> Iterator[Run | HeardWindows]:
    yield Run(tuple(window.index for window, _ in heard))
    yield heard
