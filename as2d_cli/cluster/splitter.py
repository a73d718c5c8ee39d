"""Reads a long file once and divides it into chunks of windows, for engines to share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from as2d_cli.audio.tracks import NO_CHOICE, AudioChoice
from as2d_cli.audio.vad import SpeechDetector
from as2d_cli.batch.pipeline import FileWork, known_result, windows_of
from as2d_cli.batch.resume import stamp_of
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import CHUNK_WINDOWS, Chunk, ChunkHeader, FileEnd
from as2d_cli.domain.errors import As2dError


def split_file(
    item: Item, vad: bool, choice: AudioChoice = NO_CHOICE
) -> Iterator[ChunkHeader | Chunk | FileEnd]:
    """Yield header and chunk in turn, then the end.

    The first chunk ends with the first spoken window: the language of all others may depend on that window.
    """
    speech = SpeechDetector() if vad else None
    source = item.opened()
    stamp = stamp_of(source)
    work = FileWork(source.source, item.number)
    chunk: Chunk = []
    has_speech = False
    try:
        with closing(windows_of(work, choice)) as windows:
            for window in windows:
                result = known_result(speech, window)
                chunk.append((window, result))
                is_first_spoken = not has_speech and result is None
                has_speech = has_speech or is_first_spoken
                if is_first_spoken or len(chunk) == CHUNK_WINDOWS:
                    yield from _with_header(chunk)
                    chunk = []
    except As2dError as error:
        work.error = error
    if chunk:
        yield from _with_header(chunk)
    content = item.content(stamp, work)
    yield FileEnd(work.duration_s, tuple(work.warnings), work.error, content, work.loudness)


def _with_header(chunk: Chunk) -> Iterator[ChunkHeader | Chunk]:
    yield ChunkHeader(tuple(window.index for window, _ in chunk))
    yield chunk
