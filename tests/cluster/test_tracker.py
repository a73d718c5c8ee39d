"""Files put together from what actors and splitters send, in whatever order."""

from pathlib import Path

import numpy as np
import pytest

from as2d_cli.batch.inputs import Input
from as2d_cli.batch.pipeline import NOTHING_SAID, FileWork, windows_of
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import (
    CHUNK_WINDOWS,
    WHOLE,
    DecodedFile,
    DecodedWindow,
    FileEnd,
    LongFileFound,
)
from as2d_cli.cluster.queue import ATTEMPTS
from as2d_cli.cluster.splitter import split_file
from as2d_cli.cluster.tracker import Tracker
from as2d_cli.domain.errors import AudioError, DecodeError, ModelError
from as2d_cli.domain.types import Span, WindowResult
from as2d_cli.engine.comparison import Comparison

END = FileEnd(90.0, ("clipped",), None, None, 0.1)


@pytest.fixture
def windows():
    return []


def tracker_of(windows, files=1, *, detects_language=True):
    items = [Item(number, Input(Path(f"{number}.wav")), False) for number in range(files)]

    def on_window(*window, silent):
        windows.append((*window, silent))

    return Tracker(items, on_window, detects_language=detects_language)


def divided(windows, **options):
    """Return a tracker with a long file that no splitter has begun to read."""
    tracker = tracker_of(windows, **options)
    tracker.next_piece(1, 1)
    tracker.handle_long_file(1, LongFileFound(0))
    assert [item.number for item in tracker.to_split] == [0]
    return tracker


def window(index, language="de", *, text="", error=None, silent=False):
    result = None if error else NOTHING_SAID if silent else WindowResult(text or f" {index}", (), language)
    return DecodedWindow(
        0, index, Span(30.0 * index, 30.0 * index + 30), result, error, silent, True, Comparison()
    )


def test_the_first_chunk_decides_the_language_before_another_is_handed_out(windows):
    tracker = divided(windows)
    for indexes in ((0,), (1, 2), (3,)):
        tracker.add_chunk(0, indexes, indexes)
    first = tracker.next_piece(1, 2)
    assert (first.indexes, first.language) == ((0,), None)
    assert tracker.next_piece(2, 2) is None
    tracker.handle_window(1, window(0))
    second, third = tracker.next_piece(1, 2), tracker.next_piece(2, 2)
    assert [(piece.indexes, piece.language, piece.chunk) for piece in (second, third)] == [
        ((1, 2), "de", (1, 2)),
        ((3,), "de", (3,)),
    ]


def test_as_long_as_only_silence_was_heard_the_next_chunk_waits(windows):
    tracker = divided(windows)
    tracker.add_chunk(0, (0,), None)
    tracker.add_chunk(0, (1,), None)
    tracker.next_piece(1, 2)
    tracker.handle_window(1, window(0, silent=True))
    assert tracker.next_piece(1, 2).language is None


def test_without_languages_to_detect_all_chunks_are_handed_out_at_once(windows):
    tracker = divided(windows, detects_language=False)
    tracker.add_chunk(0, (0,), None)
    tracker.add_chunk(0, (1,), None)
    assert [tracker.next_piece(engine, 2).indexes for engine in (1, 2)] == [(0,), (1,)]


def test_windows_that_come_in_any_order_make_the_file(windows):
    tracker = divided(windows, detects_language=False)
    tracker.add_chunk(0, (0, 1, 2), None)
    tracker.next_piece(1, 1)
    for index in (2, 0, 1):
        assert not tracker.finished
        tracker.handle_window(1, window(index))
    assert not tracker.finished  # there may be more to read
    tracker.end_reading(0, END)
    ((work, _),) = tracker.finished
    assert [result.text for _, result in work.parts] == [" 0", " 1", " 2"]
    assert (work.duration_s, work.warnings, work.error, work.drafting) == (90.0, ["clipped"], None, True)
    assert sum(seconds for _, seconds, _, _ in windows) == pytest.approx(90)
    assert tracker.is_over


def test_a_window_that_fails_is_tried_twice_more_and_then_fails_its_file_alone(windows):
    tracker = divided(windows, detects_language=False, files=1)
    tracker.add_chunk(0, (0, 1), None)
    for _ in range(ATTEMPTS):
        assert not tracker.finished
        tracker.next_piece(1, 1)
        tracker.handle_window(1, window(0, error=DecodeError("broken")))
    ((work, _),) = tracker.finished
    assert work.error.message == "broken"
    tracker.add_chunk(0, (2,), None)  # the splitter is late
    tracker.end_reading(0, END)
    assert tracker.next_piece(1, 1) is None
    assert len(tracker.finished) == 1


def test_of_all_long_files_together_no_more_is_read_ahead_than_engines_soon_need(windows):
    tracker = tracker_of(windows, files=2, detects_language=False)
    for number in (0, 1):
        tracker.next_piece(1, 1)
        tracker.handle_long_file(1, LongFileFound(number))
    for first in range(0, 3 * CHUNK_WINDOWS, CHUNK_WINDOWS):
        assert tracker.wants_chunk(1, 1)
        tracker.add_chunk(0, tuple(range(first, first + CHUNK_WINDOWS)), None)
    assert not tracker.wants_chunk(0, 1)
    assert not tracker.wants_chunk(1, 1)
    assert tracker.wants_chunk(1, 2)
    tracker.fail_file(0, DecodeError("broken"))
    assert tracker.wants_chunk(0, 1)  # its splitter is to be stopped
    assert tracker.wants_chunk(1, 1)


def test_a_long_file_that_cannot_be_read_on_fails_with_that(windows):
    tracker = divided(windows)
    tracker.end_reading(0, FileEnd(0.0, (), AudioError("cut off"), None, 0.0))
    assert tracker.finished[0][0].error.message == "cut off"


def test_a_long_file_in_which_nobody_speaks_says_so(windows):
    tracker = divided(windows)
    tracker.add_chunk(0, (0,), None)
    tracker.next_piece(1, 1)
    tracker.handle_window(1, window(0, silent=True))
    tracker.end_reading(0, END)
    assert (
        tracker.finished[0][0].warnings[-1].startswith("no speech found: the transcript is empty; --no-vad")
    )


def test_what_loses_engines_fails_with_the_last_reason_and_once(windows):
    tracker = tracker_of(windows)
    for engine in range(ATTEMPTS):
        tracker.next_piece(engine, 1)
        tracker.remove_engine(engine, ModelError(f"node {engine} burnt down"))
    ((work, _),) = tracker.finished
    assert work.error.message.endswith("3 times, the last time: node 2 burnt down")
    tracker.handle_file(9, DecodedFile(0, FileWork(Path("0.wav")), None, Comparison()))
    assert len(tracker.finished) == 1


def test_audio_that_is_none_is_not_tried_again(windows):
    tracker = tracker_of(windows)
    tracker.next_piece(1, 1)
    tracker.handle_file(
        1, DecodedFile(0, FileWork(Path("0.wav"), error=AudioError("no sound")), None, Comparison())
    )
    assert tracker.is_over


def test_a_splitter_gives_the_windows_of_the_local_engine_and_ends_a_chunk_after_the_first_spoken(sound):
    path = sound("a.wav", 400)
    item = Item(0, Input(path), True)
    *messages, end = split_file(item, True)
    headers, chunks = messages[::2], messages[1::2]
    assert [header.indexes for header in headers][:2] == [(0,), tuple(range(1, 9))]
    assert [tuple(window.index for window, _ in chunk) for chunk in chunks] == [
        header.indexes for header in headers
    ]
    expected = list(windows_of(FileWork(path)))
    split = [window for chunk in chunks for window, _ in chunk]
    assert [window.start for window in split] == [window.start for window in expected]
    assert all(
        np.array_equal(ours.samples, local.samples) for ours, local in zip(split, expected, strict=True)
    )
    assert (end.duration_s, end.error, end.content.size) == (400.0, None, path.stat().st_size)
    assert WHOLE not in headers[0].indexes


def test_a_file_that_comes_twice_is_compared_once(windows):
    tracker, comparison = tracker_of(windows, files=2), Comparison(windows=2, identical=2)
    tracker.next_piece(1, 1)
    for _ in range(2):
        tracker.handle_file(1, DecodedFile(0, FileWork(Path("0.wav")), None, comparison))
    assert tracker.comparison == comparison
