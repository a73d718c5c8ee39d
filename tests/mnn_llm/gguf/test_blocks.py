"""Quantised blocks against the reference implementation of ggml's formats."""

import gguf
import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_mnn_llm.gguf.blocks import PIECE_ROWS, pieces, vector
from as2d_mnn_llm.gguf.file import TYPES, GgufTensor

HALVES = {
    "F16": range(0, 128, 2),
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q8_0": (0,),
    "Q4_K": (0, 2),
    "Q6_K": (208,),
}
"""Bytes of a block at which half-precision numbers begin."""


def tensor(name, rows=5, blocks=3):
    kind = next(one for one in TYPES.values() if one.name == name)
    rng = np.random.default_rng(1)
    data = rng.integers(0, 256, (rows, blocks, kind.n_bytes), np.uint8)
    for at in HALVES[name]:
        scale = rng.uniform(-2, 2, (rows, blocks, 1)).astype("<f2")
        data[..., at : at + 2] = scale.view(np.uint8)
    return GgufTensor("t", kind, (rows, blocks * kind.size), data.reshape(rows, -1))


def reference(one):
    return gguf.dequantize(one.data, gguf.GGMLQuantizationType[one.type.name])


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K"])
def test_blocks_that_mnn_can_hold_keep_their_values_exactly(name):
    one = tensor(name)
    (piece,) = pieces(one)
    assert piece.bits == (8 if name in {"Q5_0", "Q8_0"} else 4)
    assert np.array_equal(piece.values(), reference(one))


@pytest.mark.parametrize("name", ["F16", "Q6_K"])
def test_what_mnn_cannot_hold_is_rounded_by_half_a_step_of_eight_bits_at_most(name):
    one = tensor(name)
    (piece,) = pieces(one)
    wanted = reference(one)
    ranges = np.ptp(wanted.reshape(5, -1, piece.block), axis=2)
    error = np.abs(piece.values() - wanted).reshape(5, -1, piece.block).max(axis=2)
    assert (error <= 0.501 * ranges / 255 + 1e-6).all()


def test_rows_come_in_the_order_asked_for_and_in_pieces():
    one = tensor("Q8_0", rows=PIECE_ROWS + 2, blocks=1)
    order = np.random.default_rng(2).permutation(PIECE_ROWS + 2)
    found = list(pieces(one, order))
    assert [len(piece.codes) for piece in found] == [PIECE_ROWS, 2]
    assert np.array_equal(np.concatenate([piece.values() for piece in found]), reference(one)[order])


def test_a_matrix_of_plain_numbers_is_refused_and_a_vector_taken():
    numbers = np.arange(8, dtype="<f4")
    one = GgufTensor("gain", TYPES[0], (1, 8), numbers.view(np.uint8).reshape(1, -1))
    assert np.array_equal(vector(one), numbers)
    with pytest.raises(ModelError, match="gain is stored as F32"):
        next(pieces(one))
    with pytest.raises(ModelError, match="not a vector"):
        vector(tensor("Q8_0"))
