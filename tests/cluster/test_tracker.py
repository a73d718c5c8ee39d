"""Files put together from what engines send, in whatever order."""

from pathlib import Path

import numpy as np
import pytest

from as2d_cli.batch.inputs import Input
from as2d_cli.batch.pipeline import NOTHING_SAID, FileWork, windows_of
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import RUN_WINDOWS, WHOLE, DecodedFile, DecodedWindow, End, FoundLong, Run
from as2d_cli.cluster.queue import ATTEMPTS
from as2d_cli.cluster.splitter import read_long
from as2d_cli.cluster.tracker import Tracker
from as2d_cli.domain.errors import AudioError, DecodeError, ModelError
from as2d_cli.domain.types import Span, WindowResult
from as2d_cli.engine.comparison import Comparison

END = End(90.0, ("clipped",), None, None)


@pytest.fixture
def heard():
    return []


def tracker(heard, files=1, *, detects=True):
    items = [Item(number, Input(Path(f"{number}.wav")), False) for number in range(files)]
    return Tracker(items, lambda *told, silent: heard.append((*told, silent)), detects=detects)


def divided(heard, **options):
    """Return a tracker with a long file, of which nothing has been read."""
    table = tracker(heard, **options)
    table.next_for(1, 1)
    table.found_long(1, FoundLong(0))
    assert [item.number for item in table.to_read] == [0]
    return table


def window(index, language="de", *, text="", error=None, silent=False):
    result = None if error else NOTHING_SAID if silent else WindowResult(text or f" {index}", (), language)
    return DecodedWindow(
        0, index, Span(30.0 * index, 30.0 * index + 30), result, error, silent, True, Comparison()
    )


def test_the_first_run_decides_the_language_before_another_is_handed_out(heard):
    table = divided(heard)
    for run in ((0,), (1, 2), (3,)):
        table.read(0, Run(run), run)
    first = table.next_for(1, 2)
    assert (first.indexes, first.language) == ((0,), None)
    assert table.next_for(2, 2) is None
    table.decoded_window(1, window(0))
    second, third = table.next_for(1, 2), table.next_for(2, 2)
    assert [(one.indexes, one.language, one.windows) for one in (second, third)] == [
        ((1, 2), "de", (1, 2)),
        ((3,), "de", (3,)),
    ]


def test_as_long_as_only_silence_was_heard_the_next_run_waits(heard):
    table = divided(heard)
    table.read(0, Run((0,)), None)
    table.read(0, Run((1,)), None)
    table.next_for(1, 2)
    table.decoded_window(1, window(0, silent=True))
    assert table.next_for(1, 2).language is None


def test_without_languages_to_detect_all_runs_are_handed_out_at_once(heard):
    table = divided(heard, detects=False)
    table.read(0, Run((0,)), None)
    table.read(0, Run((1,)), None)
    assert [table.next_for(engine, 2).indexes for engine in (1, 2)] == [(0,), (1,)]


def test_windows_that_come_in_any_order_make_the_file(heard):
    table = divided(heard, detects=False)
    table.read(0, Run((0, 1, 2)), None)
    table.next_for(1, 1)
    for index in (2, 0, 1):
        assert not table.done
        table.decoded_window(1, window(index))
    assert not table.done  # there may be more to read
    table.ended(0, END)
    ((work, _),) = table.done
    assert [result.text for _, result in work.parts] == [" 0", " 1", " 2"]
    assert (work.duration_s, work.warnings, work.error, work.drafting) == (90.0, ["clipped"], None, True)
    assert sum(seconds for _, seconds, _, _ in heard) == pytest.approx(90)
    assert table.is_over


def test_a_window_that_fails_is_tried_twice_more_and_then_fails_its_file_alone(heard):
    table = divided(heard, detects=False, files=1)
    table.read(0, Run((0, 1)), None)
    for _ in range(ATTEMPTS):
        assert not table.done
        table.next_for(1, 1)
        table.decoded_window(1, window(0, error=DecodeError("broken")))
    ((work, _),) = table.done
    assert work.error.message == "broken"
    table.read(0, Run((2,)), None)  # the reader is late
    table.ended(0, END)
    assert table.next_for(1, 1) is None
    assert len(table.done) == 1


def test_of_all_long_files_together_no_more_is_read_ahead_than_engines_soon_need(heard):
    table = tracker(heard, files=2, detects=False)
    for number in (0, 1):
        table.next_for(1, 1)
        table.found_long(1, FoundLong(number))
    for first in range(0, 3 * RUN_WINDOWS, RUN_WINDOWS):
        assert table.has_room(1, 1)
        table.read(0, Run(tuple(range(first, first + RUN_WINDOWS))), None)
    assert not table.has_room(0, 1)
    assert not table.has_room(1, 1)
    assert table.has_room(1, 2)
    table.give_up(0, DecodeError("broken"))
    assert table.has_room(0, 1)  # its reader is to be ended
    assert table.has_room(1, 1)


def test_a_long_file_that_cannot_be_read_on_fails_with_that(heard):
    table = divided(heard)
    table.ended(0, End(0.0, (), AudioError("cut off"), None))
    assert table.done[0][0].error.message == "cut off"


def test_a_long_file_in_which_nobody_speaks_says_so(heard):
    table = divided(heard)
    table.read(0, Run((0,)), None)
    table.next_for(1, 1)
    table.decoded_window(1, window(0, silent=True))
    table.ended(0, END)
    assert table.done[0][0].warnings[-1] == "no speech found: the transcript is empty"


def test_what_loses_engines_fails_with_the_last_reason_and_once(heard):
    table = tracker(heard)
    for engine in range(ATTEMPTS):
        table.next_for(engine, 1)
        table.lost(engine, ModelError(f"node {engine} burnt down"))
    ((work, _),) = table.done
    assert work.error.message.endswith("3 times, the last time: node 2 burnt down")
    table.decoded_file(9, DecodedFile(0, FileWork(Path("0.wav")), None, Comparison()))
    assert len(table.done) == 1


def test_audio_that_is_none_is_not_tried_again(heard):
    table = tracker(heard)
    table.next_for(1, 1)
    table.decoded_file(
        1, DecodedFile(0, FileWork(Path("0.wav"), error=AudioError("no sound")), None, Comparison())
    )
    assert table.is_over


def test_the_reader_gives_the_windows_of_the_local_engine_the_first_spoken_one_by_itself(sound):
    path = sound("a.wav", 400)
    item = Item(0, Input(path), True)
    *news, end = read_long(item, True)
    runs, windows = news[::2], news[1::2]
    assert [run.indexes for run in runs][:2] == [(0,), tuple(range(1, 9))]
    assert [tuple(one.index for one, _ in heard) for heard in windows] == [run.indexes for run in runs]
    expected = list(windows_of(FileWork(path)))
    given = [one for heard in windows for one, _ in heard]
    assert [one.start for one in given] == [one.start for one in expected]
    assert all(np.array_equal(one.samples, other.samples) for one, other in zip(given, expected, strict=True))
    assert (end.duration_s, end.error, end.content.size) == (400.0, None, path.stat().st_size)
    assert WHOLE not in runs[0].indexes


def test_a_file_that_comes_twice_is_compared_once(heard):
    table, found = tracker(heard, files=2), Comparison(windows=2, identical=2)
    table.next_for(1, 1)
    for _ in range(2):
        table.decoded_file(1, DecodedFile(0, FileWork(Path("0.wav")), None, found))
    assert table.comparison == found
