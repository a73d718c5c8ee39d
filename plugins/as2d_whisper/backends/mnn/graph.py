"""Builds the ONNX graphs of a Whisper that MNN's converter takes.

The layouts are chosen for what MNN's CPU kernels make of them (docs/decisions/0001-exact-rows.md):
- every linear layer is a plain `MatMul` with constant weights, which the converter turns into a
  prepacked 1x1 convolution (and into int8 where asked);
- self-attention multiplies `K @ q^T` and `V^T @ p`, so that queries are columns. With this layout a
  query's result has the same bits for any number of queries from two on, provided the number of
  keys is a multiple of 8 (`KEY_MULTIPLE`);
- cross-attention makes each query a batch item of its own, a matrix-vector product over the long
  encoder output: the same bits for any number of queries, even one, and no repacking of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from as2d_whisper import network
from as2d_whisper.backends.backend import AlignmentHeads
from as2d_whisper.checkpoint import Checkpoint
from as2d_whisper.layout import HEAD_SIZE
from as2d_whisper.network import LAYER_NORM_EPSILON, Array

OPSET = 20
"""First with a native Gelu, which MNN computes in one pass, by its tanh approximation (off by under
5e-4 a value). Whisper's exact one, written with Erf, takes a fifth longer to encode with and wrote the
same text where that was compared."""
Shape = Sequence[int | str]


class _Graph:
    """A growing list of nodes; every method returns the name of its output."""

    def __init__(self, n_heads: int) -> None:
        self.n_heads = n_heads
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: Shape) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        return name

    def output(self, name: str, shape: Shape) -> str:
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        return name

    def constant(self, array: NDArray[np.generic]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind: str, *inputs: str, out: str | None = None, **attributes: float | list[int]) -> str:
        name = out or f"t{len(self.nodes)}"
        node = helper.make_node(kind, list(inputs), [name])
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        return name

    def rename(self, last: str, name: str) -> None:
        """Give the last node's output another name."""
        assert self.nodes[-1].output[0] == last
        self.nodes[-1].output[0] = name

    def linear(self, x: str, weight: Array, bias: Array | None) -> str:
        product = self.op("MatMul", x, self.constant(weight.T))
        return product if bias is None else self.op("Add", product, self.constant(bias))

    def project(self, x: str, parts: Sequence[tuple[Array, Array | None]]) -> list[str]:
        return [self.linear(x, weight, bias) for weight, bias in parts]

    def layer_norm(self, x: str, gamma: Array, beta: Array) -> str:
        scale, shift = self.constant(gamma), self.constant(beta)
        return self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=LAYER_NORM_EPSILON)

    def gelu(self, x: str) -> str:
        return self.op("Gelu", x)

    def add(self, x: str, y: str) -> str:
        return self.op("Add", x, y)

    def reshape(self, x: str, shape: Sequence[int], out: str | None = None) -> str:
        return self.op("Reshape", x, self.constant(np.array(shape, np.int64)), out=out)

    def transpose(self, x: str, order: Sequence[int], out: str | None = None) -> str:
        return self.op("Transpose", x, out=out, perm=list(order))

    def slice(self, x: str, axis: int, start: int, stop: int) -> str:
        bounds = [self.constant(np.array([value], np.int64)) for value in (start, stop, axis)]
        return self.op("Slice", x, *bounds)

    def as_long_as(self, x: str, axis: int, other: str, other_axis: int) -> str:
        """Return the beginning of `x`, as long on its axis as `other` is on its own."""
        zero, first, last, along = (
            self.constant(np.array([value], np.int64)) for value in (0, other_axis, other_axis + 1, axis)
        )
        length = self.op("Slice", self.op("Shape", other), first, last, zero)
        return self.op("Slice", x, zero, length, along)

    def mean(self, x: str, axes: Sequence[int], out: str) -> str:
        return self.op("ReduceMean", x, self.constant(np.array(axes, np.int64)), out=out, keepdims=0)

    def split_heads(self, x: str, order: Sequence[int], out: str | None = None) -> str:
        """(1, T, d) to heads: `order` permutes (1, T, heads, d_head)."""
        return self.transpose(self.reshape(x, [1, -1, self.n_heads, HEAD_SIZE]), order, out=out)

    def save(self, path: Path) -> None:
        graph = helper.make_graph(self.nodes, "whisper", self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        onnx.save(model, str(path))


KEYS, VALUES_T, QUERIES_T = [0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 3, 1]
"""Orders of (1, T, heads, 64) that put tokens in rows, or in columns."""
_AUDIO_KEYS, _AUDIO_VALUES = [2, 0, 1, 3], [2, 0, 3, 1]
"""The same with heads first, before an axis along which the rows of a pass are laid out."""
_HEADS_AT_ONCE = 2
"""Heads whose L x L attention scores exist together in the encoder: less memory, at no cost in time."""


class _Encoder(_Graph):
    """Makes what only an encoder has."""

    def convolve(self, x: str, weight: Array, bias: Array, stride: int) -> str:
        parts = self.constant(weight), self.constant(bias)
        return self.op("Conv", x, *parts, kernel_shape=[3], pads=[1, 1], strides=[stride])

    def as_rows(self, x: str) -> str:
        return self.transpose(x, [0, 2, 1])

    def add_positions(self, x: str, positions: Array) -> str:
        return self.op("Add", x, self.as_long_as(self.constant(positions), 0, x, 1))

    def attend(self, query: str, key: str, value: str) -> str:
        query, value = self.split_heads(query, KEYS), self.split_heads(value, KEYS)
        key = self.split_heads(key, QUERIES_T)
        groups = []
        for first in range(0, self.n_heads, _HEADS_AT_ONCE):
            last = min(first + _HEADS_AT_ONCE, self.n_heads)
            some_query, some_key, some_value = (
                self.slice(heads_of, 1, first, last) for heads_of in (query, key, value)
            )
            scores = self.op("Softmax", self.op("MatMul", some_query, some_key), axis=-1)
            groups.append(self.op("MatMul", scores, some_value))
        joined = self.transpose(self.op("Concat", *groups, axis=1), [0, 2, 1, 3])
        return self.reshape(joined, [1, -1, self.n_heads * HEAD_SIZE])


def build_encoder(checkpoint: Checkpoint, path: Path) -> None:
    """Write the encoder: `mel` (1, n_mels, 2 L) to cross-attention keys and values of each decoder layer.

    Outputs `key_i` (h, 1, L, 64) and `value_i` (h, 1, 64, L), for any L up to a full window's.
    """
    heads = checkpoint.n_heads
    graph = _Encoder(heads)
    mel = graph.input("mel", [1, checkpoint.n_mels, "2L"])
    for index, (key, value) in enumerate(network.encode(graph, checkpoint, mel)):
        keys = graph.output(f"key_{index}", [heads, 1, "L", HEAD_SIZE])
        graph.split_heads(key, _AUDIO_KEYS, out=keys)
        values = graph.output(f"value_{index}", [heads, 1, HEAD_SIZE, "L"])
        graph.split_heads(value, _AUDIO_VALUES, out=values)
    graph.save(path)


class _Decoder(_Graph):
    """Makes the attention of a decoder, and its inputs: the cache, the mask, the encoder's output."""

    def __init__(self, n_heads: int, n_layers: int) -> None:
        super().__init__(n_heads)
        self.d_model = n_heads * HEAD_SIZE
        width = 2 * n_layers * self.d_model
        self.x = self.input("x", [1, "R", self.d_model])
        self.past = [self.input("early", ["C1", width]), self.input("late", ["C2", width])]
        self.mask = self.input("mask", [1, 1, "T", "R"])
        self.live = self.input("live", ["n", 1])
        self.present: list[str] = []
        """New keys and values, two of each layer."""
        self.attention: list[str] = []
        """Cross-attention probabilities of each layer, (h, n, L, 1)."""

    def attend_text(self, layer: int, query: str, key: str, value: str) -> str:
        query = self.split_heads(query, QUERIES_T)
        self.present += [key, value]
        start, joined = 2 * layer * self.d_model, []
        for rows, offset, order in ((key, start, KEYS), (value, start + self.d_model, VALUES_T)):
            cached = [self.slice(part, 1, offset, offset + self.d_model) for part in self.past]
            old = [self.reshape(part, [1, -1, self.d_model]) for part in cached]
            joined.append(self.split_heads(self.op("Concat", *old, rows, axis=1), order))
        scores = self.op("Add", self.op("MatMul", joined[0], query), self.mask)  # (1, h, T, R)
        attended = self.op("MatMul", joined[1], self.op("Softmax", scores, axis=2))
        return self.reshape(self.transpose(attended, [0, 3, 1, 2]), [1, -1, self.d_model])

    def attend_audio(self, layer: int, query: str) -> str:
        """Attend with one row at a time; rows beyond the live ones attend to nothing.

        Heads come before rows, so that a head's keys stay near the core while all rows use them.
        """
        key = self.input(f"key_{layer}", [self.n_heads, 1, "L", HEAD_SIZE])
        value = self.input(f"value_{layer}", [self.n_heads, 1, HEAD_SIZE, "L"])
        query = self.reshape(query, [-1, self.n_heads, HEAD_SIZE, 1])
        query = self.transpose(self.as_long_as(query, 0, self.live, 0), [1, 0, 2, 3])
        probabilities = self.op("Softmax", self.op("MatMul", key, query), axis=2)
        self.attention.append(probabilities)
        attended = self.transpose(self.op("MatMul", value, probabilities), [1, 0, 2, 3])  # (n, h, 64, 1)
        nothing = self.constant(np.zeros((1, 1, self.d_model), np.float32))
        attended = self.op("Concat", self.reshape(attended, [1, -1, self.d_model]), nothing, axis=1)
        return self.as_long_as(attended, 1, self.x, 1)


def build_decoder(checkpoint: Checkpoint, alignment_heads: AlignmentHeads, path: Path) -> None:
    """Write one decoder step over R new tokens, of which n are wanted, after C cached ones (T = C + R keys).

    Inputs: `x` (1, R, d) embedded tokens; `early` and `late`, together (C, 2 k d), the keys and values of all
    k layers token by token; `mask` (1, 1, T, R), 0 or a large negative number; `live` (n, 1), whose length
    alone matters; `key_i` (h, 1, L, 64) and `value_i` (h, 1, 64, L) from the encoder.
    Outputs: `logits` (1, R, vocab), of which the first n are right; `present` (R, 2 k d); `alignment` (n, L),
    the mean cross-attention probabilities of the alignment heads, of which there must be one at least.
    """
    n = checkpoint.n_layers("decoder")
    width = 2 * n * checkpoint.d_model
    graph = _Decoder(checkpoint.n_heads, n)
    logits = network.decode(graph, checkpoint, graph.x)
    graph.rename(logits, graph.output("logits", [1, "R", checkpoint.vocab_size]))
    rows = graph.op("Concat", *graph.present, axis=2)
    graph.reshape(rows, [-1, width], out=graph.output("present", ["R", width]))
    parts = [graph.slice(graph.attention[layer], 0, head, head + 1) for layer, head in alignment_heads]
    graph.mean(graph.op("Concat", *parts, axis=0), [0, 3], out=graph.output("alignment", ["n", "L"]))
    graph.save(path)
