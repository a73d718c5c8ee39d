"""Which engine gets which keys, and what happens to them when an engine is lost or slow."""

from pathlib import Path

import pytest

from as2d_cli.batch.inputs import Input
from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import WHOLE, WindowPiece
from as2d_cli.cluster.queue import ATTEMPTS, FILES_AT_ONCE, WorkQueue


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def queue_of(n_files, clock):
    return WorkQueue([Item(number, Input(Path(f"{number}.wav")), False) for number in range(n_files)], clock)


def numbers(piece):
    return [number for number, _ in piece.keys]


def test_every_file_is_handed_out_once_in_order_in_ever_smaller_pieces(clock):
    queue = queue_of(100, clock)
    sizes, seen = [], []
    while piece := queue.next_piece(len(sizes) % 2, 2):
        sizes.append(len(piece.keys))
        seen += numbers(piece)
        for key in piece.keys:
            assert queue.accept(len(sizes) % 2 ^ 1, key)
    assert seen == list(range(100))
    assert sizes[0] == FILES_AT_ONCE
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1


def test_an_engine_with_work_enough_gets_no_more(clock):
    queue = queue_of(100, clock)
    piece = queue.next_piece(1, 1)
    assert queue.next_piece(1, 1) is None
    for key in piece.keys[:-2]:
        queue.accept(1, key)
    assert queue.next_piece(1, 1) is not None


def test_an_idle_engine_takes_over_from_the_end_of_what_another_has_and_the_first_result_counts(clock):
    queue = queue_of(8, clock)
    had = queue.next_piece(1, 1).keys
    while (piece := queue.next_piece(2, 1)).keys[0] not in had:
        for key in piece.keys:
            queue.accept(2, key)
    assert piece.keys == had[-1:]
    assert queue.accept(2, had[-1])
    assert queue.next_piece(3, 2).keys == had[-2:-1]
    assert not queue.accept(1, had[-1])


def test_the_last_file_is_begun_again_elsewhere_only_when_it_takes_long(clock):
    queue = queue_of(1, clock)
    queue.next_piece(1, 2)
    assert queue.next_piece(2, 2) is None
    clock.now = 60.0
    assert numbers(queue.next_piece(2, 2)) == [0]
    assert queue.next_piece(3, 3) is None  # twice is enough


def test_what_a_lost_engine_had_is_done_by_others_and_what_it_had_sent_is_not(clock):
    queue = queue_of(40, clock)
    lost = queue.next_piece(1, 1)
    queue.accept(1, lost.keys[0])
    assert queue.remove_engine(1) is None
    seen = []
    while piece := queue.next_piece(2, 1):
        seen += numbers(piece)
        for key in piece.keys:
            queue.accept(2, key)
    assert sorted(seen) == [number for number in range(40) if number != lost.keys[0][0]]


def test_files_that_an_engine_may_have_had_in_work_are_tried_again_one_by_one(clock):
    queue = queue_of(40, clock)
    lost = queue.next_piece(1, 1)
    queue.remove_engine(1)
    assert [len(queue.next_piece(engine, 1).keys) for engine in range(10, 15)] == [1] * 5
    assert len(queue.next_piece(15, 1).keys) == len(lost.keys) - 5


def test_a_file_that_loses_its_engine_every_time_is_given_up_and_no_other(clock):
    queue = queue_of(3, clock)
    given_up, engine = None, 0
    while given_up is None:
        engine += 1
        piece = queue.next_piece(engine, 1)
        for key in piece.keys:
            if key[0] == 1:
                given_up = queue.remove_engine(engine)
                break
            queue.accept(engine, key)
    assert given_up == (1, WHOLE)
    assert engine <= ATTEMPTS + 2


def test_a_file_that_fails_is_tried_twice_more_and_then_its_failure_counts(clock):
    queue = queue_of(1, clock)
    for _ in range(ATTEMPTS - 1):
        (key,) = queue.next_piece(1, 1).keys
        assert not queue.accept(1, key, failed=True)
    queue.next_piece(1, 1)
    assert queue.accept(1, (0, WHOLE), failed=True)
    assert queue.next_piece(1, 1) is None


def test_windows_of_a_long_file_go_first_and_of_a_file_that_is_over_not_at_all(clock):
    queue = queue_of(2, clock)
    queue.add_windows([WindowPiece(7, (0, 1), "reference"), WindowPiece(8, (0,), "reference")])
    queue.drop_file(7)
    assert queue.next_piece(1, 1).keys == ((8, 0),)
    assert numbers(queue.next_piece(1, 1)) == [0]


def test_a_copy_that_is_still_in_work_elsewhere_is_not_handed_out_again(clock):
    queue = queue_of(1, clock)
    queue.next_piece(1, 1)
    clock.now = 60.0
    queue.next_piece(2, 2)
    assert queue.remove_engine(1) is None
    assert queue.next_piece(3, 1) is None
    assert queue.accept(2, (0, WHOLE))
