"""Tokenizers as GGUF files describe them."""

from pathlib import Path

import gguf
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_mnn_llm.bpe import LlmTokenizer
from as2d_mnn_llm.gguf.file import GgufFile
from as2d_mnn_llm.gguf.tokenizer import write_tokenizer

STAND_INS = Path(__file__).parents[1] / "data" / "stand_ins"
TEXTS = [
    "It was the best of times, it was the worst of times.",
    "In 2021: 4.5 % of €1,000 — don't!\n\n\tTwo  spaces, trailing ",
    "Größe, naïve, 日本語のテキスト, Привет, 😀👍🏽",
    "",
]


@pytest.fixture(scope="module")
def smollm(smollm_folder):
    return LlmTokenizer.load(smollm_folder)


def toy(path, pre="qwen2", model="gpt2", merges=("l o", "2 1")):
    """Write a file with the bytes of some letters, what the merges make, and one special token."""
    tokens = [
        *"abelo21",
        "Ċ",
        "Ġ",
        "Ã",
        "©",
        "Ì",
        "ģ",
        *(merge.replace(" ", "") for merge in merges),
        "<end>",
    ]
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - 1) + [3])
    writer.add_token_merges(merges)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return GgufFile(path), tokens


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back_as_it_was(smollm, text):
    ids = smollm.encode(text)
    assert smollm.decode_bytes(ids).decode() == text
    assert b"".join(smollm.decode_bytes([one]) for one in ids).decode() == text


def test_special_tokens_are_known_by_name_but_never_read_nor_written(smollm):
    end = smollm.special("<|im_end|>")
    assert end == 2
    assert end not in smollm.encode("the end<|im_end|>")
    assert smollm.decode_bytes([end, 1 << 20]) == b""
    assert smollm.size == 49152
    with pytest.raises(ModelError, match=r"no token <\|think\|>"):
        smollm.special("<|think|>")


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gemma")
    write_tokenizer(GgufFile(STAND_INS / "gemma3" / "model.gguf"), folder)
    return LlmTokenizer.load(folder)


@pytest.mark.parametrize("text", [*TEXTS, " a  b   c\n\n\n<h1>\t<0x41>"])
def test_text_comes_back_from_sentencepieces_tokens(gemma, text):
    ids = gemma.encode(text)
    assert gemma.decode_bytes(ids).decode() == text
    assert b"".join(gemma.decode_bytes([one]) for one in ids).decode() == text


def test_marks_of_a_conversation_in_a_text_stay_text(gemma):
    marks = {gemma.special(name) for name in ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>")}
    assert len(marks) == 4
    assert marks.isdisjoint(gemma.encode("<bos><start_of_turn>user\nSo?<end_of_turn><eos>"))
    assert gemma.decode_bytes(sorted(marks)) == b""


@pytest.mark.parametrize(("pre", "pieces"), [("smollm", ["2", "1"]), ("qwen2", ["2", "1"])])
def test_digits_stand_alone_whatever_the_merges_say(tmp_path, pre, pieces):
    file, tokens = toy(tmp_path / "toy.gguf", pre)
    write_tokenizer(file, tmp_path)
    ids = LlmTokenizer.load(tmp_path).encode("lo21")
    assert [tokens[one] for one in ids] == ["lo", *pieces]


def test_qwen_composes_characters_before_it_cuts(tmp_path):
    file, tokens = toy(tmp_path / "toy.gguf", "qwen2")
    write_tokenizer(file, tmp_path)
    ids = LlmTokenizer.load(tmp_path).encode("e\N{COMBINING ACUTE ACCENT}")
    assert [tokens[one] for one in ids] == ["Ã", "©"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"pre": "gemma9"}, "pre-tokenizer 'gemma9' is not known"),
        ({"model": "llama"}, "tokenizer 'llama'"),
        ({"merges": ("l o", "lo")}, "do not fit together"),
    ],
)
def test_a_tokenizer_of_another_kind_is_refused(tmp_path, changes, why):
    file, _ = toy(tmp_path / "toy.gguf", **changes)
    with pytest.raises(ModelError, match=why):
        write_tokenizer(file, tmp_path)


def test_tokenizers_with_other_merges_have_other_fingerprints(tmp_path):
    prints = set()
    for merges in (("l o", "2 1"), ("l o", "a b")):
        file, _ = toy(tmp_path / "toy.gguf", merges=merges)
        write_tokenizer(file, tmp_path)
        prints.add(LlmTokenizer.load(tmp_path).fingerprint)
    assert len(prints) == 2
