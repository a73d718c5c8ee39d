"""Whisper's tokenizer: text and ids are each other's inverse, and files with a known fault are repaired."""

import json
import os
import subprocess
import sys

import pytest

from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, decode
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Request
from as2d_whisper.tokenizer import WhisperTokenizer, repair_tokenizer

TRANSCRIPTS = [
    " And so, my fellow Americans, ask not what your country can do for you, ask what you can do.",
    " It was the best of times, it was the worst of times, to the 3,000 guineas of 1,775 (or thereabouts)...",
    " \"Don't!\" she cried - I'll, we've, they'd; $5.99 at 10:30 a.m. & 50% off -- naïve café",
    " Die Höhle befindet sich auf der Spitze eines der Berge nördlich von Mekka und ist völlig isoliert.",
    " ¿Cuántos años tienes? El señor Núñez vive en España desde hace tres años.",
    " L'été dernier, nous avons mangé des crêpes à Besançon, n'est-ce pas ?",
    "甚至出现交易几乎停滞的情况",
    "今日はとても天気がいいですね。明日も晴れるでしょう。",
    " Сегодня хорошая погода, не правда ли?",
    " مرحبا بكم في هذا البرنامج",
    "วันนี้อากาศดีมาก",
    " 오늘 날씨가 정말 좋네요.",
    " 🎵 ♪ la la la ♪ 👩‍👩‍👧",
    "",
    " ",
    "  two  spaces\nand a line\t tab ",
]


@pytest.fixture(scope="module", params=["base_folder", "tiny_en_folder"])
def tokenizer(request):
    return WhisperTokenizer(request.getfixturevalue(request.param) / "tokenizer.json")


@pytest.mark.parametrize("text", TRANSCRIPTS)
def test_text_comes_back_from_its_ids_and_the_ids_from_their_text(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode_bytes(ids).decode() == text
    assert tokenizer.encode(tokenizer.decode_bytes(ids).decode()) == ids


def test_the_words_that_a_lost_first_merge_would_split_are_one_token(tokenizer):
    for word in (" t", " to", " the", " that", " they"):
        assert len(tokenizer.encode(word)) == 1, word


@pytest.mark.parametrize(
    ("name", "model"), [("jfk.flac", "base"), ("jfk.flac", "tiny_en"), ("fleurs-de-004.ogg", "base")]
)
def test_what_the_model_wrote_encodes_to_what_it_wrote(request, features, name, model):
    target = request.getfixturevalue(model)
    session = target.open(features(name, target.spec.features), Request())
    steps = decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=target.spec.end_id)
    ids = [token for step in steps for token in step.tokens][:-1]
    assert len(ids) > 20
    assert target.tokenizer.encode(target.tokenizer.decode_bytes(ids).decode()) == ids


@pytest.mark.parametrize(
    "text",
    [
        "<|endoftext|>",
        "a<|0.00|>b",
        "<|startoftranscript|><|en|>",
        "<|<|endoftext|>|>",
        "<|",
        "|>",
        "<|x",
        "x <|",
    ],
)
def test_special_tokens_in_plain_text_are_plain_text(tokenizer, text):
    ids = tokenizer.encode(text)
    assert ids
    assert max(ids) < tokenizer.end_id
    assert tokenizer.decode_bytes(ids).decode() == text


def test_special_and_unknown_ids_have_no_bytes(tokenizer):
    for token in (
        tokenizer.end_id,
        tokenizer.special("<|notimestamps|>"),
        tokenizer.end_id + 1500,
        10**6,
        -1,
    ):
        assert tokenizer.decode_bytes([token]) == b""


def test_a_character_may_be_split_over_tokens(tokenizer):
    text = "👩‍👩‍👧"
    ids = tokenizer.encode(text)
    pieces = [tokenizer.decode_bytes([token]) for token in ids]
    assert b"".join(pieces) == text.encode() == tokenizer.decode_bytes(ids)
    with pytest.raises(UnicodeDecodeError):
        pieces[0].decode()


def test_every_single_byte_can_be_decoded(tokenizer):
    single = {tokenizer.decode_bytes([token]) for token in range(256)}
    assert single == {bytes([byte]) for byte in range(256)}


def test_languages_are_whispers_in_vocabulary_order(base_folder):
    tokenizer = WhisperTokenizer(base_folder / "tokenizer.json")
    languages = tokenizer.languages
    assert len(languages) == 99
    assert list(languages)[:3] == ["en", "zh", "de"]
    assert languages["en"] == tokenizer.special("<|en|>")
    assert list(languages.values()) == sorted(languages.values())


def test_the_language_that_large_v3_added_is_found_by_its_token(tmp_path, tokenizer_file):
    ids = tokenizer_file(tmp_path / "tokenizer.json", ("en", "su", "yue"))
    tokenizer = WhisperTokenizer(tmp_path / "tokenizer.json")
    assert tokenizer.languages == {name: ids[f"<|{name}|>"] for name in ("en", "su", "yue")}
    assert tokenizer.special("<|notimestamps|>") == ids["<|notimestamps|>"]


def test_only_an_equal_vocabulary_has_an_equal_fingerprint(base, tiny_en, base_folder):
    again = WhisperTokenizer(base_folder / "tokenizer.json")
    assert again.fingerprint == base.tokenizer.fingerprint != tiny_en.tokenizer.fingerprint


def test_an_unknown_special_token_is_an_error_that_names_it(tokenizer):
    assert not tokenizer.has_special("<|nothing|>")
    with pytest.raises(ModelError, match=r"<\|nothing\|>"):
        tokenizer.special("<|nothing|>")


def with_pairs(path):
    """Write merges as lists, as newer versions of the tokenizers library do."""
    content = json.loads(path.read_text())
    content["model"]["merges"] = [merge.split(" ") for merge in content["model"]["merges"]]
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("lost", [False, True])
def test_a_lost_first_merge_is_put_back_and_a_whole_file_left_alone(tmp_path, tokenizer_file, lost, pairs):
    source, repaired, whole = (tmp_path / name for name in ("source.json", "repaired.json", "whole.json"))
    tokenizer_file(whole, ("en",))
    merges = [merge.split(" ") for merge in json.loads(whole.read_text())["model"]["merges"]]
    tokenizer_file(source, ("en",), merges[1:] if lost else merges)
    if pairs:
        with_pairs(source)
        with_pairs(whole)
    repair_tokenizer(source, repaired)
    assert json.loads(repaired.read_text()) == json.loads(whole.read_text())
    assert len(WhisperTokenizer(repaired).encode(" the")) == 1
    assert len(WhisperTokenizer(source).encode(" the")) == (3 if lost else 1)


def test_more_than_the_first_merge_lost_is_left_alone(tmp_path, tokenizer_file):
    """What is not understood is not repaired."""
    tokenizer_file(tmp_path / "source.json", ("en",))
    content = json.loads((tmp_path / "source.json").read_text())
    content["model"]["merges"] = content["model"]["merges"][3:]
    (tmp_path / "source.json").write_text(json.dumps(content))
    repair_tokenizer(tmp_path / "source.json", tmp_path / "same.json")
    assert json.loads((tmp_path / "same.json").read_text()) == content


BAD = {
    "missing": None,
    "empty": b"",
    "no JSON": b"{",
    "not UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "a number": b"1",
    "no model": b'{"added_tokens": []}',
    "a model that is a list": b'{"model": []}',
    "no merges": b'{"model": {"vocab": {"a": 256}, "merges": []}}',
    "a merge that is a number": b'{"model": {"vocab": {"a": 256}, "merges": [1]}}',
    "a vocabulary of nothing": b'{"model": {"vocab": null, "merges": ["a b"]}}',
    "deep": b"[" * 100_000,
    "a merge of numbers": b'{"model": {"vocab": {"ab": 256}, "merges": [[1, 2]]}}',
    "half a character": b'{"model": {"vocab": {"ab": 256, "\\ud800": 0}, "merges": ["a b"]}}',
    "too few words": b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": []}',
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_bad_file_is_an_error_that_names_it(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        repair_tokenizer(path, tmp_path / "out.json")
    with pytest.raises(ModelError):
        WhisperTokenizer(path)
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    "added",
    [
        *(None, 5, [1], [{"id": "x"}], [{"content": "a"}], [{"id": "x", "content": "a"}]),
        *([{"id": number, "content": "a"}] for number in (-1, 1.5, float("inf"), 2**31, True)),
        [{"id": 1, "content": 1}],
    ],
)
def test_bad_added_tokens_are_an_error(tmp_path, tokenizer_file, added):
    path = tmp_path / "tokenizer.json"
    tokenizer_file(path, ("en",))
    path.write_text(json.dumps({**json.loads(path.read_text()), "added_tokens": added}))
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        WhisperTokenizer(path)


def changed_tokenizer(path, tokenizer_file, **changes):
    """Write a tokenizer whose file says something else in places."""
    tokenizer_file(path, ("en",))
    content = json.loads(path.read_text())
    content["model"] |= changes.pop("model", {})
    path.write_text(json.dumps({**content, **changes}))
    return path


DOUBLING = {
    "type": "Sequence",
    "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 60,
}


@pytest.mark.parametrize(
    "model",
    [
        *({"vocab": {"a": value}} for value in ("0", -1, 2**31 - 1)),
        *({"vocab": {"a": 1, "b": 1}}, {"continuing_subword_prefix": "longer than any"}, {"dropout": 0.5}),
    ],
)
def test_ids_that_cannot_be_are_an_error(tmp_path, tokenizer_file, model):
    with pytest.raises(ModelError, match=r"tokenizer\.json: not a usable tokenizer"):
        WhisperTokenizer(changed_tokenizer(tmp_path / "tokenizer.json", tokenizer_file, model=model))


def test_a_file_cannot_make_a_text_longer_before_it_is_encoded(tmp_path, tokenizer_file):
    with pytest.raises(ModelError, match="changes texts"):
        WhisperTokenizer(changed_tokenizer(tmp_path / "tokenizer.json", tokenizer_file, normalizer=DOUBLING))


def test_a_file_can_neither_pad_nor_cut_what_is_encoded(tmp_path, tokenizer_file):
    told = {"direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "!", "pad_to_multiple_of": None}
    padding = {"strategy": {"Fixed": 10**9}, **told}
    truncation = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    path = tmp_path / "tokenizer.json"
    made = WhisperTokenizer(changed_tokenizer(path, tokenizer_file, padding=padding, truncation=truncation))
    assert made.decode_bytes(made.encode(" the")) == b" the"


def test_a_token_that_stands_for_no_bytes_is_an_error_that_names_it(tmp_path, tokenizer_file):
    path = tmp_path / "tokenizer.json"
    made = WhisperTokenizer(changed_tokenizer(path, tokenizer_file, model={"vocab": {"日": 3}}))
    with pytest.raises(ModelError, match="token 3 does not stand for bytes"):
        made.decode_bytes([3])


def test_a_target_without_drafts_needs_neither_onnx_nor_the_encoding_half_of_its_tokenizer(tiny_en_folder):
    code = (
        "import sys; from pathlib import Path; from as2d_whisper.target import WhisperTarget; "
        f"target = WhisperTarget(Path({str(tiny_en_folder)!r}), 1); "
        "text = target.tokenizer.decode_bytes([383]); "
        "sys.exit(f'{text}' if 'onnx' in sys.modules or '_bpe' in vars(target.tokenizer) or not text else 0)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
