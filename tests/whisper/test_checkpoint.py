"""Weights files: two formats of the same model agree, and no file can do worse than an error."""

import json
import random
import resource
import struct

import numpy as np
import pytest
from safetensors.numpy import save

from as2d_cli.domain.errors import ModelError
from as2d_whisper import tensor_files
from as2d_whisper.checkpoint import read_checkpoint
from as2d_whisper.tensor_files import read_ctranslate2, read_safetensors

MUTATIONS = 10_000


@pytest.mark.parametrize(("n_mels", "n_heads"), [(80, 1), (128, 2)])
def test_both_formats_of_a_model_give_the_same_checkpoint(tmp_path, tiny_whisper, n_mels, n_heads):
    model = tiny_whisper(n_mels=n_mels, n_heads=n_heads)
    model.write_safetensors(tmp_path / "a")
    model.write_ctranslate2(tmp_path / "b")
    ours, theirs = read_checkpoint(tmp_path / "a"), read_checkpoint(tmp_path / "b")
    assert set(ours.tensors) == set(theirs.tensors) - {"decoder/num_heads"}
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours.tensors)
    for checkpoint in (ours, theirs):
        assert (checkpoint.d_model, checkpoint.n_heads, checkpoint.n_mels) == (64 * n_heads, n_heads, n_mels)
        assert (checkpoint.n_audio_positions, checkpoint.n_text_positions) == (50, 448)
        assert (checkpoint.vocab_size, checkpoint.n_layers("decoder")) == (model.vocab_size, 2)
        assert checkpoint["encoder/conv1/weight"].dtype == np.float32


def test_bfloat16_keeps_the_upper_half_of_each_value(tmp_path, tiny_whisper):
    model = tiny_whisper()
    model.write_safetensors(tmp_path / "a", bfloat16=True)
    ours = read_checkpoint(tmp_path / "a")["decoder/embeddings/weight"]
    exact = model.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)
    assert np.abs(ours - exact).max() > 0
    assert np.allclose(ours, exact, rtol=2**-7, atol=0)


def test_an_output_projection_of_its_own_is_used(tmp_path, tiny_whisper):
    model = tiny_whisper()
    model.arrays["proj_out.weight"] = model.draw(model.vocab_size, model.d_model)
    model.write_safetensors(tmp_path)
    checkpoint = read_checkpoint(tmp_path)
    assert np.array_equal(checkpoint["decoder/projection/weight"], model.arrays["proj_out.weight"])
    assert not np.array_equal(
        checkpoint["decoder/projection/weight"], checkpoint["decoder/embeddings/weight"]
    )


@pytest.mark.parametrize(
    "name", ["model.encoder.conv1.bias", "model.decoder.layers.1.self_attn.v_proj.weight"]
)
def test_a_missing_array_is_named_with_its_file(tmp_path, tiny_whisper, name):
    model = tiny_whisper()
    del model.arrays[name]
    model.write_safetensors(tmp_path)
    with pytest.raises(ModelError, match=rf"model\.safetensors: array '{name}' is missing"):
        read_checkpoint(tmp_path)


def test_a_missing_array_of_a_ctranslate2_model_is_named_with_its_file(
    tmp_path, tiny_whisper, ctranslate2_bytes
):
    model = tiny_whisper()
    model.write_ctranslate2(tmp_path)
    arrays = model.ctranslate2_arrays()
    del arrays["encoder/layer_1/ffn/linear_0/bias"]
    (tmp_path / "model.bin").write_bytes(ctranslate2_bytes(arrays))
    with pytest.raises(ModelError, match=r"model\.bin: array 'encoder/layer_1/ffn/linear_0/bias' is missing"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("model.encoder.conv1.weight", (64, 80, 5)),
        ("model.encoder.layers.0.fc1.weight", (64, 256)),
        ("model.decoder.embed_positions.weight", (448, 32)),
        ("model.decoder.layers.0.self_attn.k_proj.weight", (64, 32)),
        ("model.decoder.layers.0.encoder_attn.q_proj.bias", (1, 64)),
        ("model.decoder.layer_norm.weight", ()),
    ],
)
def test_an_array_of_the_wrong_shape_is_refused(tmp_path, tiny_whisper, name, shape):
    model = tiny_whisper()
    model.arrays[name] = np.zeros(shape, np.float16)
    model.write_safetensors(tmp_path)
    with pytest.raises(ModelError, match=r"expected float|do not fit"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("heads", [0, -1, 3, None, "8", 1.0, True])
def test_a_senseless_number_of_heads_is_refused(tmp_path, tiny_whisper, heads):
    tiny_whisper().write_safetensors(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"decoder_attention_heads": heads}))
    with pytest.raises(ModelError, match="heads"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("heads", [np.int16(0), np.int32(-4), np.float32(1), np.array([1, 1], np.int16)])
def test_a_senseless_number_of_heads_in_a_ctranslate2_model_is_refused(tmp_path, tiny_whisper, heads):
    tiny_whisper().write_ctranslate2(tmp_path, **{"decoder/num_heads": heads})
    with pytest.raises(ModelError, match="heads"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_a_quantised_ctranslate2_model_is_refused_with_what_to_take_instead(tmp_path, tiny_whisper, kind):
    quantised = {"encoder/layer_0/ffn/linear_0/weight": np.ones((256, 64), kind)}
    tiny_whisper().write_ctranslate2(tmp_path, **quantised)
    with pytest.raises(ModelError, match="already quantised to int") as refused:
        read_checkpoint(tmp_path)
    assert "float16" in refused.value.hint


def test_a_folder_without_weights_or_config_says_which_file_it_lacks(tmp_path):
    with pytest.raises(ModelError, match=r"config\.json"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"no model\.bin and no model\.safetensors"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ModelError, match="not a JSON object"):
        read_checkpoint(tmp_path)


def safetensors_bytes(header, data=b"\0" * 16, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(shape=(4,), offsets=(0, 16), dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HOSTILE = {
    "empty": b"",
    "short": b"\1\0\0",
    "header longer than the file": safetensors_bytes({}, length=2**63),
    "no JSON": safetensors_bytes(b"{nothing"),
    "not UTF-8": safetensors_bytes(b'{"\xff\xfe": 1}'),
    "deep JSON": safetensors_bytes(b"[" * 100_000),
    "a list": safetensors_bytes([1, 2]),
    "an array that is a number": safetensors_bytes({"a": 1}),
    "an array that is a list": safetensors_bytes({"a": [1]}),
    "no shape": safetensors_bytes({"a": {"dtype": "F32", "data_offsets": [0, 16]}}),
    "huge shape": safetensors_bytes({"a": entry([2**62, 2**62])}),
    "shape whose product overflows to the size": safetensors_bytes({"a": entry([2**62 + 1, 4])}),
    "huge shape of nothing": safetensors_bytes({"a": entry([0, 10**30], [0, 0])}),
    "negative shape": safetensors_bytes({"a": entry([-1])}),
    "a product of negative shapes": safetensors_bytes({"a": entry([-2, -2])}),
    "too many dimensions": safetensors_bytes({"a": entry([1] * 100 + [4])}),
    "offsets past the end": safetensors_bytes({"a": entry(offsets=(16, 32))}),
    "offsets backwards": safetensors_bytes({"a": entry(offsets=(16, 0))}),
    "negative offsets": safetensors_bytes({"a": entry(offsets=(-16, 0))}),
    "three offsets": safetensors_bytes({"a": entry(offsets=(0, 8, 16))}),
    "infinite offsets": safetensors_bytes(
        b'{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, Infinity]}}'
    ),
    "fractional shape": safetensors_bytes({"a": entry([4.0])}),
    "unknown type": safetensors_bytes({"a": entry(dtype="Q4")}),
    "a type that is a list": safetensors_bytes({"a": entry(dtype=["F32"])}),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_safetensors_file_is_refused(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        read_safetensors(path)


def ct2_array(name=b"a\0", shape=(2,), code=0, size=None, data=b"\0" * 8):
    head = struct.pack("<H", len(name)) + name + struct.pack(f"<B{len(shape)}I", len(shape), *shape)
    return head + struct.pack("<BI", code, len(data) if size is None else size) + data


def ct2_bytes(arrays=b"", count=1, version=6, spec=b"WhisperSpec\0", aliases=b"\0\0\0\0"):
    head = struct.pack("<I", version) + struct.pack("<H", len(spec)) + spec + struct.pack("<II", 3, count)
    return head + arrays + aliases


HOSTILE_CT2 = {
    "empty": b"",
    "short": b"\6\0",
    "old": ct2_bytes(version=3),
    "from the future": ct2_bytes(version=2**31),
    "another model": ct2_bytes(spec=b"TransformerSpec\0"),
    "a name that is not UTF-8": ct2_bytes(ct2_array(b"\xff\xfe\0")),
    "a spec that is not UTF-8": ct2_bytes(spec=b"\xff\0"),
    "more arrays than there are": ct2_bytes(ct2_array(), count=2**32 - 1),
    "huge shape": ct2_bytes(ct2_array(shape=[2**32 - 1] * 8)),
    "shape whose product overflows to the size": ct2_bytes(ct2_array(shape=[2**31, 2**31, 2**2, 2])),
    "many dimensions": ct2_bytes(ct2_array(shape=[1] * 255)),
    "huge size": ct2_bytes(ct2_array(size=2**32 - 1)),
    "size that does not fit the shape": ct2_bytes(ct2_array(shape=(3,))),
    "unknown type": ct2_bytes(ct2_array(code=200)),
    "an alias of nothing": ct2_bytes(ct2_array(), aliases=struct.pack("<IH", 1, 1) + b"b" + b"\1\0c"),
    "no end": ct2_bytes(ct2_array(), aliases=b""),
}


@pytest.mark.parametrize("content", HOSTILE_CT2.values(), ids=HOSTILE_CT2)
def test_a_hostile_ctranslate2_file_is_refused(tmp_path, content):
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.bin"):
        read_ctranslate2(path)


def test_these_ways_to_write_a_file_are_right_where_nothing_is_wrong(tmp_path):
    (tmp_path / "a").write_bytes(safetensors_bytes({"a": entry(), "__metadata__": {"x": "y"}}))
    assert read_safetensors(tmp_path / "a")["a"].shape == (4,)
    (tmp_path / "b").write_bytes(ct2_bytes(ct2_array()))
    assert read_ctranslate2(tmp_path / "b")["a"].tolist() == [0, 0]


def mutated(content, draw, head):
    """Change some bytes, mostly of the first `head` where the structure is, or cut or double a piece."""
    result = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(head if draw.random() < 0.8 else len(content))
        way = draw.random()
        if way < 0.7:
            changed = draw.choice((0, 1, 0x7F, 0x80, 0xFF, ord("9"), ord('"'), draw.randrange(256)))
            result[at : at + 1] = bytes([changed])
        elif way < 0.85:
            del result[at : at + draw.choice((1, 2, 4, 1000))]
        else:
            result[at:at] = result[at : at + draw.choice((1, 2, 8))]
    return bytes(result)


@pytest.fixture
def few_arrays():
    return {f"layer_{i}/weight": np.full((2, i), i, np.float16) for i in range(12)}


def refusals(content, read, draw, *, head, count):
    """`read` that many mutations; what is neither a result nor a `ModelError` fails the test."""
    refused = 0
    for _ in range(count):
        try:
            read(mutated(content, draw, head))
        except ModelError:
            refused += 1
    return refused


def test_no_mutation_of_a_file_does_worse_than_an_error(monkeypatch, few_arrays, ctranslate2_bytes):
    """Files that are mapped from memory: to write 20,000 of them takes far longer than to read them."""
    monkeypatch.setattr(tensor_files, "_map", memoryview)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    few, safe = ctranslate2_bytes(few_arrays, aliases={"other": "layer_3/weight"}), save(few_arrays)
    head = 8 + int.from_bytes(safe[:8], "little")
    for content, read, size in ((few, read_ctranslate2, len(few)), (safe, read_safetensors, head)):
        refused = refusals(content, read, random.Random(7), head=size, count=MUTATIONS)
        assert MUTATIONS / 2 < refused < MUTATIONS  # most damage shows, changed weights cannot
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


@pytest.mark.parametrize("kind", ["model.bin", "model.safetensors"])
def test_no_mutation_of_a_model_does_worse_than_an_error(tmp_path, tiny_whisper, kind):
    """The whole way that conversion goes, with the check of names and shapes."""
    model = tiny_whisper(n_layers=1, n_audio=4)
    (model.write_ctranslate2 if kind == "model.bin" else model.write_safetensors)(tmp_path)
    path = tmp_path / kind
    content = path.read_bytes()
    head = 2000 if kind == "model.bin" else 8 + int.from_bytes(content[:8], "little")

    def read(damaged):
        path.write_bytes(damaged)
        read_checkpoint(tmp_path)

    assert 50 < refusals(content, read, random.Random(8), head=head, count=500) < 500
