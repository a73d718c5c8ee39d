import itertools

import pytest

from as2d_cli.decoding import END, DraftState, DraftStream, DraftToken, Retokenizer, write_draft
from as2d_scripted import ScriptedTokenizer

WORDS, BYTES = ScriptedTokenizer(), ScriptedTokenizer(words=False)
END_ID = WORDS.size
VOCAB = END_ID + 1


class Setup:
    def __init__(self, capacity=64, drafter=WORDS):
        self.stream = DraftStream.in_memory(capacity)
        self.stream.reset(1)
        self.writer = self.stream.writer(1)
        self.reader = self.stream.reader(1, VOCAB)
        self.retokenizer = Retokenizer(drafter, WORDS, VOCAB)

    def fill(self, draft):
        return write_draft(self.writer, iter(draft), self.retokenizer, end_id=END_ID)

    def published(self):
        return self.reader.ids(0, self.reader.snapshot())


def tokens(text, tokenizer=WORDS):
    return [DraftToken(index) for index in tokenizer.encode(text)]


def test_a_finished_draft_ends_with_the_targets_end_id():
    setup = Setup()
    assert setup.fill([*tokens(" now and then"), DraftToken(END)]) == DraftState.ENDED
    assert setup.published() == [*WORDS.encode(" now and then"), END_ID]
    assert setup.reader.state == DraftState.ENDED


def test_a_draft_of_another_vocabulary_is_published_in_the_targets():
    setup = Setup(drafter=BYTES)
    setup.fill([*tokens(" now and then", BYTES), DraftToken(END)])
    assert setup.published() == [*WORDS.encode(" now and then"), END_ID]


def test_a_draft_that_just_stops_is_capped_and_gives_out_what_it_held():
    setup = Setup(drafter=BYTES)
    assert setup.fill(tokens(" now and then", BYTES)) == DraftState.CAPPED
    assert setup.published() == WORDS.encode(" now and then")


def test_a_draft_longer_than_its_stream_is_capped():
    setup = Setup(capacity=5)
    assert setup.fill(DraftToken(index) for index in itertools.count(65)) == DraftState.CAPPED
    assert len(setup.published()) == 5


def test_an_end_that_no_longer_fits_is_not_called_an_end():
    setup = Setup(capacity=3, drafter=BYTES)
    assert setup.fill([*tokens(" now and then", BYTES), DraftToken(END)]) == DraftState.CAPPED


def test_a_drafter_in_a_loop_is_stopped():
    setup = Setup(capacity=500)
    assert setup.fill(DraftToken(index) for index in itertools.cycle([65, 66, 67])) == DraftState.LOOPED
    assert len(setup.published()) == 24


def test_a_drafter_that_raises_leaves_a_failed_stream_and_its_tokens():
    def draft():
        yield from tokens(" now and")
        raise RuntimeError("native code gave up")

    setup = Setup()
    with pytest.raises(RuntimeError, match="gave up"):
        setup.fill(draft())
    assert (setup.published(), setup.reader.state) == (WORDS.encode(" now and"), DraftState.FAILED)


def test_a_cancelled_draft_stops_at_the_next_token_and_closes_the_drafter():
    closed = []

    def draft():
        try:
            yield from tokens(" now and then")
            setup.reader.cancel()
            yield from tokens(" never")
        finally:
            closed.append(True)

    setup = Setup()
    assert write_draft(setup.writer, draft(), setup.retokenizer, end_id=END_ID) == DraftState.CANCELLED
    assert (setup.published(), closed) == (WORDS.encode(" now and then"), [True])
