from multiprocessing.shared_memory import SharedMemory

import pytest

from as2d_cli.decoding import EMPTY, DraftState, DraftStream
from as2d_cli.decoding.virtual import VirtualClock
from as2d_cli.domain.errors import DecodeError

VOCAB = 100


def new_stream(capacity=8, clock=None):
    stream = DraftStream.in_memory(capacity, clock or VirtualClock())
    stream.reset(1)
    return stream


def test_published_tokens_arrive_in_order_and_stay():
    stream = new_stream()
    writer, reader = stream.writer(1), stream.reader(1, VOCAB)
    writer.publish([5, 6])
    writer.publish([7])
    assert (reader.snapshot(), reader.ids(0, 3), reader.ids(1, 2)) == (3, [5, 6, 7], [6])


def test_two_mappings_of_one_shared_memory_see_each_other():
    memory = SharedMemory(create=True, size=2 * DraftStream.bytes_needed(4))
    try:
        second = memory.buf[DraftStream.bytes_needed(4) :]
        here, there = DraftStream(second, 4), DraftStream(second, 4)
        here.reset(3)
        there.writer(3).publish([9, 8])
        reader = here.reader(3, VOCAB)
        seen = (reader.snapshot(), reader.ids(0, 2))
        here.close()
        there.close()
        second.release()
    finally:
        memory.close()
        memory.unlink()
    assert seen == (2, [9, 8])


def test_a_fresh_slot_waits_then_drafts_then_says_why_it_stopped():
    stream = new_stream()
    reader = stream.reader(1, VOCAB)
    states = [reader.state]
    writer = stream.writer(1)
    states.append(reader.state)
    writer.finish(DraftState.LOOPED)
    states.append(reader.state)
    assert states == [DraftState.WAITING, DraftState.DRAFTING, DraftState.LOOPED]


def test_a_snapshot_is_complete_only_when_it_holds_the_last_token():
    stream = new_stream()
    writer, reader = stream.writer(1), stream.reader(1, VOCAB)
    writer.publish([1])
    reader.snapshot()
    before = reader.complete
    writer.publish([2])
    writer.finish(DraftState.ENDED)
    assert (before, reader.complete) == (False, False), "completeness belongs to the snapshot"
    assert (reader.snapshot(), reader.complete) == (2, True)


def test_tokens_that_die_between_payload_and_count_are_never_seen():
    """The drafter is killed in the middle of publishing."""
    stream = new_stream()
    stream.writer(1).publish([5])
    stream.ids[1:3] = [6, 7]  # what `publish` does first
    assert stream.reader(1, VOCAB).snapshot() == 1


def test_a_late_publish_of_a_cancelled_window_is_invisible_to_the_next():
    stream = new_stream()
    old = stream.writer(1)
    stream.reset(2)
    reader = stream.reader(2, VOCAB)
    old.publish([5, 6, 7])
    old.finish(DraftState.FAILED)
    assert (reader.snapshot(), reader.state, old.cancelled) == (0, DraftState.WAITING, True)


def test_a_reused_slot_shows_only_the_new_window():
    stream = new_stream()
    old = stream.writer(1)
    old.publish([5, 6, 7])
    old.finish(DraftState.ENDED)
    stream.reader(1, VOCAB).cancel()
    stream.reset(2)
    writer, reader = stream.writer(2), stream.reader(2, VOCAB)
    assert (reader.snapshot(), writer.cancelled) == (0, False)
    writer.publish([8])
    assert reader.ids(0, reader.snapshot()) == [8]


def test_cancelling_reaches_the_writer():
    stream = new_stream()
    writer, reader = stream.writer(1), stream.reader(1, VOCAB)
    assert not writer.cancelled
    reader.cancel()
    assert writer.cancelled


def test_a_full_stream_takes_what_fits_and_overwrites_nothing():
    """A drafter far ahead must not overwrite unread tokens."""
    stream = new_stream(capacity=3)
    writer, reader = stream.writer(1), stream.reader(1, VOCAB)
    assert (writer.publish([1, 2]), writer.full) == (2, False)
    assert (writer.publish([3, 4, 5]), writer.full, writer.publish([6])) == (1, True, 0)
    assert reader.ids(0, reader.snapshot()) == [1, 2, 3]


def test_ids_that_the_target_does_not_have_never_leave_the_reader():
    stream = new_stream()
    stream.writer(1).publish([-1, VOCAB - 1, VOCAB, 2**31 - 1, -(2**31)])
    assert stream.reader(1, VOCAB).ids(0, 5) == [0, VOCAB - 1, 0, 0, 0]


def test_publish_times_count_from_the_reset_by_the_injected_clock():
    clock = VirtualClock()
    clock.advance(1000)
    stream = new_stream(clock=clock)
    writer = stream.writer(1)
    clock.advance(0.25)
    writer.publish([1, 2])
    clock.advance(0.5)
    writer.publish([3])
    assert stream.reader(1, VOCAB).times_ms(0, 3) == [250, 250, 750]


def test_the_beginning_of_a_draft_is_told_once_its_drafter_has_taken_up_this_window():
    clock = VirtualClock()
    clock.advance(7)
    stream = new_stream(clock=clock)
    reader = stream.reader(1, VOCAB)
    assert (reader.origin_s, reader.begun_s) == (7, None)
    clock.advance(0.5)
    stream.writer(1)
    assert (reader.origin_s, reader.begun_s) == (7, 7.5)
    clock.advance(1)
    stream.reset(2)
    later = stream.reader(2, VOCAB)
    assert (later.origin_s, later.begun_s) == (8.5, None)
    stream.writer(2)
    stream.begun[0] = 7.5  # as a late drafter of the window before may have it
    assert later.begun_s is None


def test_the_empty_stream_has_nothing_and_expects_nothing():
    EMPTY.cancel()
    assert (EMPTY.snapshot(), EMPTY.complete, EMPTY.ids(0, 0)) == (0, True, [])


def test_a_closed_stream_lets_go_of_its_buffer_and_reads_as_empty():
    buffer = bytearray(DraftStream.bytes_needed(4))
    stream = DraftStream(buffer, 4)
    stream.reset(1)
    stream.writer(1).publish([1])
    stream.close()
    buffer.extend(b"x")  # raises BufferError while anything still points into it
    assert stream.reader(1, VOCAB).snapshot() == 0


@pytest.mark.parametrize(
    "buffer",
    [None, bytearray(DraftStream.bytes_needed(8) - 1), memoryview(bytes(DraftStream.bytes_needed(8)))],
    ids=["closed", "short", "read-only"],
)
def test_an_unfit_buffer_is_one_clear_error(buffer):
    with pytest.raises(DecodeError, match="draft stream"):
        DraftStream(buffer, 8)


def test_a_misaligned_buffer_is_refused_because_its_words_could_tear():
    with pytest.raises(DecodeError, match="aligned"):
        DraftStream(memoryview(bytearray(DraftStream.bytes_needed(8) + 1))[1:], 8)


@pytest.mark.parametrize("epoch", [0, -1, 2**31])
def test_an_epoch_outside_its_range_is_refused(epoch):
    with pytest.raises(DecodeError, match="epoch"):
        new_stream().reset(epoch)


def test_the_largest_epoch_and_count_fit_their_word():
    stream = new_stream()
    stream.reset(2**31 - 1)
    stream.writer(2**31 - 1).publish([1, 2])
    assert stream.reader(2**31 - 1, VOCAB).snapshot() == 2
    stream.tag(0, 2**31 - 1, 2**32 - 1)
    assert stream.tagged(0, 2**31 - 1) == 2**32 - 1


@pytest.mark.parametrize("state", [7, 148, 2**31])
def test_a_state_that_there_is_not_is_a_draft_that_failed(state):
    stream = new_stream()
    stream.reset(3)
    stream.writer(3).publish([5])
    stream.tag(1, 3, state)
    reader = stream.reader(3, 100)
    assert (reader.snapshot(), reader.complete, reader.state) == (1, True, DraftState.FAILED)
