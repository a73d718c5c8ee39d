"""Unstable BPE, incomplete UTF-8, leading spaces, text without spaces."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as BpeModel
from tokenizers import decoders, models, pre_tokenizers, trainers

from as2d_cli.decoding import Retokenizer

VOCAB = 10_000
ENGLISH = (
    " The quick brown fox didn't jump over 21 lazy dogs; nobody expected the unexpected jumping, obviously."
)
CHINESE = "今天天气很好，我们去公园散步吧。今天我们吃什么？我们今天去吃饺子，好不好？"  # noqa: RUF001 real punctuation
MIXED = " Grüße aus Köln – naïve café 🙂 e\u0301tude, он сказал: привет мир\n and  two   spaces"  # noqa: RUF001


def byte_of_symbol():
    """GPT-2's printable stand-ins for bytes, which tokenizer files use."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = itertools.count(256)
    return {chr(byte if byte in plain else next(spare)): byte for byte in range(256)}


class Bpe:
    """A real byte-level BPE, trained on the spot."""

    bytes_of = byte_of_symbol()

    def __init__(self, corpus, size):
        self.model = BpeModel(models.BPE())
        self.model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.model.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=list(self.bytes_of), show_progress=False
        )
        self.model.train_from_iterator(corpus, trainer)
        self.fingerprint = json.dumps(self.model.get_vocab(), sort_keys=True)

    def encode(self, text):
        return self.model.encode(text, add_special_tokens=False).ids

    def decode_bytes(self, ids):
        symbols = "".join(self.model.id_to_token(index) or "" for index in ids)
        return bytes(self.bytes_of[symbol] for symbol in symbols)


SMALL = Bpe([ENGLISH], 280)
LARGE = Bpe([ENGLISH, CHINESE, MIXED] * 4, 480)


def convert(text, drafter=SMALL, target=LARGE):
    """Feed one id at a time; return what came before the flush and the whole."""
    retokenizer = Retokenizer(drafter, target, VOCAB)
    early = [token for index in drafter.encode(text) for token in retokenizer.feed([index])]
    return early, early + retokenizer.flush()


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, MIXED, ENGLISH + CHINESE + MIXED, "", " a", "é", " "])
@pytest.mark.parametrize(("drafter", "target"), [(SMALL, LARGE), (LARGE, SMALL)])
def test_token_by_token_gives_the_ids_of_the_whole_text(text, drafter, target):
    assert convert(text, drafter, target)[1] == target.encode(text)


words = st.text("abdehijmnoprtuxyz'é,.;0123", min_size=1, max_size=8)


@given(st.lists(words, max_size=12), st.sampled_from([(SMALL, LARGE), (LARGE, SMALL)]))
def test_any_words_give_the_ids_of_the_whole_text(parts, tokenizers):
    text = "".join(f" {part}" for part in parts)
    assert convert(text, *tokenizers)[1] == tokenizers[1].encode(text)


def test_a_word_is_held_back_until_the_next_one_begins():
    retokenizer = Retokenizer(SMALL, LARGE, VOCAB)
    assert retokenizer.feed(SMALL.encode(" unexpected")) == []
    assert retokenizer.feed(SMALL.encode(" ")) == [], "the space may belong to anything"
    assert retokenizer.feed(SMALL.encode("jump")) == LARGE.encode(" unexpected")
    assert retokenizer.flush() == LARGE.encode(" jump")


def test_text_without_spaces_is_not_held_back_to_the_end():
    early, whole = convert(CHINESE)
    assert len(early) > 0.5 * len(whole)


def test_half_a_character_waits_for_its_other_half():
    first, *rest = "é".encode()
    retokenizer = Retokenizer(SMALL, LARGE, VOCAB)
    symbol = {byte: symbol for symbol, byte in Bpe.bytes_of.items()}
    ids = [SMALL.model.token_to_id(symbol[byte]) for byte in (first, *rest)]
    assert retokenizer.feed(ids[:1]) == []
    assert retokenizer.feed(ids[1:]) + retokenizer.flush() == LARGE.encode("é")


def test_half_a_character_at_the_end_of_a_cut_draft_is_dropped():
    symbol = {byte: symbol for symbol, byte in Bpe.bytes_of.items()}
    retokenizer = Retokenizer(SMALL, LARGE, VOCAB)
    retokenizer.feed([*SMALL.encode("a"), SMALL.model.token_to_id(symbol[0xC3])])
    assert retokenizer.flush() == LARGE.encode("a")


def test_broken_bytes_in_the_middle_do_not_stop_the_draft():
    symbol = {byte: symbol for symbol, byte in Bpe.bytes_of.items()}
    retokenizer = Retokenizer(SMALL, LARGE, VOCAB)
    broken = [SMALL.model.token_to_id(symbol[byte]) for byte in (0xFF, 0xC3)]
    ids = retokenizer.feed([*broken, *SMALL.encode(" ok then")]) + retokenizer.flush()
    assert LARGE.decode_bytes(ids).decode().endswith(" ok then")


def test_equal_tokenizers_pass_ids_through_at_once():
    retokenizer = Retokenizer(SMALL, SMALL, VOCAB)
    ids = SMALL.encode(ENGLISH)
    assert [retokenizer.feed([index]) for index in ids] == [[index] for index in ids]
    assert retokenizer.flush() == []


def test_equal_tokenizers_still_drop_special_ids_and_ids_beyond_the_targets_vocabulary():
    retokenizer = Retokenizer(SMALL, SMALL, vocab_size=270)
    known, beyond, special = 5, 271, 100_000
    assert retokenizer.feed([known, beyond, special, known]) == [known, known]


class Lowercasing(Bpe):
    """A tokenizer that rewrites text, so that token bytes are not the text's bytes."""

    def encode(self, text):
        return super().encode(text.lower().replace("。", "."))


def test_a_tokenizer_that_rewrites_text_loses_nothing_of_a_spaceless_draft():
    target = Lowercasing([CHINESE] * 4, 400)
    assert convert(CHINESE, SMALL, target)[1] == target.encode(CHINESE)
