"""Which weight of a GGUF file is which, and what cannot be converted."""

import gguf
import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_mnn_llm.export.decoder import decoder_weights
from as2d_mnn_llm.gguf.file import GgufFile
from as2d_mnn_llm.gguf.model import GgufWeights, read_shape

HIDDEN, FFN, HEADS, KV_HEADS, VOCAB = 64, 96, 4, 2, 40
Q8_0 = gguf.GGMLQuantizationType.Q8_0


def write(path, kind="qwen2", extra=(), head=None):
    """Write a model of one layer; each matrix is random by its name."""
    writer = gguf.GGUFWriter(path, kind)
    numbers = {"block_count": 1, "embedding_length": HIDDEN, "feed_forward_length": FFN}
    numbers |= {"attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, **dict(extra)}
    for key, value in numbers.items():
        writer.add_uint32(f"{kind}.{key}", value)
    writer.add_float32(f"{kind}.attention.layer_norm_rms_epsilon", 1e-6)
    narrow = HIDDEN // HEADS * KV_HEADS
    sizes = {"attn_q": (HIDDEN, HIDDEN), "attn_k": (narrow, HIDDEN), "attn_v": (narrow, HIDDEN)}
    sizes |= {"attn_output": (HIDDEN, HIDDEN), "ffn_gate": (FFN, HIDDEN), "ffn_up": (FFN, HIDDEN)}
    sizes |= {"ffn_down": (HIDDEN, FFN)}
    rng = np.random.default_rng(0)
    embedding = rng.standard_normal((VOCAB, HIDDEN)).astype(np.float32)
    matrices = {f"blk.0.{name}": rng.standard_normal(size).astype(np.float32) for name, size in sizes.items()}
    matrices["token_embd"] = embedding
    if head is not None:
        matrices["output"] = head(embedding).astype(np.float32)
    for name, values in matrices.items():
        writer.add_tensor(f"{name}.weight", gguf.quantize(values, Q8_0), raw_dtype=Q8_0)
    for name in ("attn_q", "attn_k", "attn_v"):
        writer.add_tensor(f"blk.0.{name}.bias", np.arange(len(matrices[f"blk.0.{name}"]), dtype=np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(HIDDEN, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return GgufFile(path), matrices


def values(matrix):
    return np.concatenate([piece.values() for piece in matrix])


def test_every_weight_that_is_asked_for_is_there_in_its_size(tmp_path):
    file, _ = write(tmp_path / "a.gguf")
    shape = read_shape(file)
    weights = GgufWeights(file, shape)
    matrices, norms = decoder_weights(shape)
    assert shape.tied
    for name, size in matrices.items():
        assert values(weights.weight(name)).shape == size
    for name, size in norms.items():
        assert weights.weight(name).shape == (size,)


def test_biases_go_with_their_matrix(tmp_path):
    file, _ = write(tmp_path / "a.gguf")
    (piece,) = GgufWeights(file, read_shape(file)).weight("0.k")
    assert np.array_equal(piece.bias, np.arange(len(piece.codes)))


def test_heads_that_a_matrix_does_not_have_are_refused(tmp_path):
    file, _ = write(tmp_path / "a.gguf", "llama", {"attention.key_length": 1 << 19})
    with pytest.raises(ModelError, match=r"attn_q\.weight does not have the rows of 4 heads"):
        GgufWeights(file, read_shape(file)).weight("0.q")


def test_llama_heads_are_put_in_half_split_order_and_qwen_heads_left(tmp_path):
    for kind in ("llama", "qwen2"):
        file, matrices = write(tmp_path / f"{kind}.gguf", kind)
        found = values(GgufWeights(file, read_shape(file)).weight("0.q"))
        wanted = gguf.dequantize(gguf.quantize(matrices["blk.0.attn_q"], Q8_0), Q8_0)
        if kind == "llama":
            size = HIDDEN // HEADS
            pairs = wanted.reshape(HEADS, size // 2, 2, HIDDEN)  # (first, second) of each pair side by side
            wanted = np.concatenate((pairs[:, :, 0], pairs[:, :, 1]), axis=1).reshape(HIDDEN, HIDDEN)
        assert np.array_equal(found, wanted)


def test_a_head_that_is_the_embedding_rounded_again_is_taken_for_both(tmp_path):
    rng = np.random.default_rng(3)
    same, _ = write(tmp_path / "same.gguf", head=lambda one: one + 0.02 * rng.standard_normal(one.shape))
    other, _ = write(tmp_path / "other.gguf", head=lambda one: rng.standard_normal(one.shape))
    assert read_shape(same).tied
    assert not read_shape(other).tied


@pytest.mark.parametrize(
    ("kind", "extra", "why"),
    [
        ("gemma", {}, "architecture 'gemma' cannot be converted"),
        ("gemma3", {"block_count": 62}, "a Gemma 3 that cannot be converted"),
        ("gemma3", {}, r"gemma3\.attention\.sliding_window is missing"),
        ("gemma3", {"attention.sliding_window": 0}, "cannot have such windows"),
        ("llama", {"expert_count": 8}, r"llama\.expert_count is not supported"),
        ("llama", {"rope.scaling.factor": 2}, r"llama\.rope\.scaling\.factor is not supported"),
        ("llama", {"attention.head_count": 3}, "3 heads do not divide 64"),
        ("qwen2", {"block_count": 2**31}, "beyond all that there are"),
        ("qwen2", {"attention.key_length": 2**31}, "beyond all that there are"),
        ("qwen2", {"rope.freq_base": 0}, "cannot have these dimensions"),
    ],
)
def test_what_would_be_computed_wrongly_is_refused(tmp_path, kind, extra, why):
    file, _ = write(tmp_path / "a.gguf", kind, extra)
    with pytest.raises(ModelError, match=why):
        read_shape(file)
