"""Builds the ONNX graphs of a Whisper encoder and of an incremental decoder step.

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

from as2d_whisper.checkpoint import Checkpoint
from as2d_whisper.layout import HEAD_SIZE

LAYER_NORM_EPSILON = 1e-5  # PyTorch's default, which Whisper was trained with
OPSET = 20
"""First with a native Gelu, which MNN computes in one pass, by its tanh approximation (off by under
5e-4 a value). Whisper's exact one, written with Erf, takes a fifth longer to encode with and wrote the
same text where that was compared."""
Shape = Sequence[int | str]
AlignmentHeads = Sequence[tuple[int, int]]


class _Graph:
    """A growing list of nodes; every method returns the name of its output."""

    def __init__(self) -> None:
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

    def linear(
        self, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32] | None, out: str | None = None
    ) -> str:
        """Multiply by `weight` of shape (out, in), transposed, and add the bias."""
        product = self.op("MatMul", x, self.constant(weight.T), out=out if bias is None else None)
        return product if bias is None else self.op("Add", product, self.constant(bias), out=out)

    def layer_norm(self, x: str, checkpoint: Checkpoint, name: str) -> str:
        gamma, beta = checkpoint[f"{name}/gamma"], checkpoint[f"{name}/beta"]
        return self.op(
            "LayerNormalization",
            x,
            self.constant(gamma),
            self.constant(beta),
            axis=-1,
            epsilon=LAYER_NORM_EPSILON,
        )

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

    def save(self, path: Path) -> None:
        graph = helper.make_graph(self.nodes, "whisper", self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        onnx.save(model, str(path))


def _split_heads(graph: _Graph, x: str, n_heads: int, order: Sequence[int], out: str | None = None) -> str:
    """(1, T, d) to heads: `order` permutes (1, T, heads, d_head)."""
    return graph.transpose(graph.reshape(x, [1, -1, n_heads, HEAD_SIZE]), order, out=out)


KEYS, VALUES_T, QUERIES_T = [0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 3, 1]
"""Orders of (1, T, heads, 64) that put tokens in rows, or in columns."""
_AUDIO_KEYS, _AUDIO_VALUES = [2, 0, 1, 3], [2, 0, 3, 1]
"""The same with heads first, before an axis along which the rows of a pass are laid out."""
_QUERY_SCALE = np.float32(HEAD_SIZE**-0.5)
_HEADS_AT_ONCE = 2
"""Heads whose L x L attention scores exist together in the encoder: less memory, at no cost in time."""


def _feed_forward(graph: _Graph, x: str, checkpoint: Checkpoint, layer: str) -> str:
    y = graph.layer_norm(x, checkpoint, f"{layer}/ffn/layer_norm")
    y = graph.linear(y, *_linear(checkpoint, f"{layer}/ffn/linear_0"))
    y = graph.linear(graph.op("Gelu", y), *_linear(checkpoint, f"{layer}/ffn/linear_1"))
    return graph.op("Add", x, y)


def _linear(checkpoint: Checkpoint, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return checkpoint[f"{name}/weight"], checkpoint[f"{name}/bias"]


def _project(graph: _Graph, x: str, checkpoint: Checkpoint, name: str, part: str) -> str:
    """Apply one part ("query", "key", "value") of an attention projection.

    The query carries the softmax scale; Whisper's keys have no bias.
    """
    weight, bias = _linear(checkpoint, name)
    parts = _PARTS[len(weight) // checkpoint.d_model]
    start = parts.index(part) * checkpoint.d_model
    rows = slice(start, start + checkpoint.d_model)
    factor = _QUERY_SCALE if part == "query" else np.float32(1)
    return graph.linear(x, weight[rows] * factor, None if part == "key" else bias[rows] * factor)


_PARTS = {1: ("query",), 2: ("key", "value"), 3: ("query", "key", "value")}
"""What a projection joins, by how many times the model's width it gives."""


def build_encoder(checkpoint: Checkpoint, path: Path) -> None:
    """Write the encoder: `mel` (1, n_mels, 2 L) to cross-attention keys and values of each decoder layer.

    Outputs `key_i` (h, 1, L, 64) and `value_i` (h, 1, 64, L), for any L up to a full window's.
    """
    graph, heads = _Graph(), checkpoint.n_heads
    x = graph.input("mel", [1, checkpoint.n_mels, "2L"])
    for name, stride in (("encoder/conv1", 1), ("encoder/conv2", 2)):
        weight, bias = (graph.constant(array) for array in _linear(checkpoint, name))
        x = graph.op("Conv", x, weight, bias, kernel_shape=[3], pads=[1, 1], strides=[stride])
        x = graph.op("Gelu", x)
    x = graph.transpose(x, [0, 2, 1])
    positions = graph.constant(checkpoint["encoder/position_encodings/encodings"])
    x = graph.op("Add", x, graph.as_long_as(positions, 0, x, 1))
    for index in range(checkpoint.n_layers("encoder")):
        x = _encoder_layer(graph, x, checkpoint, f"encoder/layer_{index}")
    x = graph.layer_norm(x, checkpoint, "encoder/layer_norm")
    for index in range(checkpoint.n_layers("decoder")):
        name = f"decoder/layer_{index}/attention/linear_1"
        key = graph.output(f"key_{index}", [heads, 1, "L", HEAD_SIZE])
        _split_heads(graph, _project(graph, x, checkpoint, name, "key"), heads, _AUDIO_KEYS, out=key)
        value = graph.output(f"value_{index}", [heads, 1, HEAD_SIZE, "L"])
        _split_heads(graph, _project(graph, x, checkpoint, name, "value"), heads, _AUDIO_VALUES, out=value)
    graph.save(path)


def _encoder_layer(graph: _Graph, x: str, checkpoint: Checkpoint, layer: str) -> str:
    heads, name = checkpoint.n_heads, f"{layer}/self_attention"
    y = graph.layer_norm(x, checkpoint, f"{name}/layer_norm")
    query = _split_heads(graph, _project(graph, y, checkpoint, f"{name}/linear_0", "query"), heads, KEYS)
    key = _split_heads(graph, _project(graph, y, checkpoint, f"{name}/linear_0", "key"), heads, QUERIES_T)
    value = _split_heads(graph, _project(graph, y, checkpoint, f"{name}/linear_0", "value"), heads, KEYS)
    groups = []
    for first in range(0, heads, _HEADS_AT_ONCE):
        last = min(first + _HEADS_AT_ONCE, heads)
        some_query, some_key, some_value = (
            graph.slice(heads_of, 1, first, last) for heads_of in (query, key, value)
        )
        scores = graph.op("Softmax", graph.op("MatMul", some_query, some_key), axis=-1)
        groups.append(graph.op("MatMul", scores, some_value))
    joined = graph.transpose(graph.op("Concat", *groups, axis=1), [0, 2, 1, 3])
    joined = graph.reshape(joined, [1, -1, checkpoint.d_model])
    x = graph.op("Add", x, graph.linear(joined, *_linear(checkpoint, f"{name}/linear_1")))
    return _feed_forward(graph, x, checkpoint, layer)


def build_decoder(checkpoint: Checkpoint, alignment_heads: AlignmentHeads, path: Path) -> None:
    """Write one decoder step over R new tokens, of which n are wanted, after C cached ones (T = C + R keys).

    Inputs: `x` (1, R, d) embedded tokens; `early` and `late`, together (C, 2 k d), the keys and values of all
    k layers token by token; `mask` (1, 1, T, R), 0 or a large negative number; `live` (n, 1), whose length
    alone matters; `key_i` (h, 1, L, 64) and `value_i` (h, 1, 64, L) from the encoder.
    Outputs: `logits` (1, R, vocab), of which the first n are right; `present` (R, 2 k d); `alignment` (n, L),
    the mean cross-attention probabilities of the alignment heads, of which there must be one at least.
    """
    graph, n = _Graph(), checkpoint.n_layers("decoder")
    d, heads = checkpoint.d_model, checkpoint.n_heads
    x = graph.input("x", [1, "R", d])
    past = [graph.input("early", ["C1", 2 * n * d]), graph.input("late", ["C2", 2 * n * d])]
    mask = graph.input("mask", [1, 1, "T", "R"])
    live = graph.input("live", ["n", 1])
    present: list[str] = []
    attention: dict[int, str] = {}
    for index in range(n):
        layer = f"decoder/layer_{index}"
        x, new = _self_attention(graph, x, checkpoint, layer, past=(past, 2 * index * d), mask=mask)
        present += new
        key = graph.input(f"key_{index}", [heads, 1, "L", HEAD_SIZE])
        value = graph.input(f"value_{index}", [heads, 1, HEAD_SIZE, "L"])
        x, attention[index] = _cross_attention(graph, x, checkpoint, layer, audio=(key, value), live=live)
        x = _feed_forward(graph, x, checkpoint, layer)
    x = graph.layer_norm(x, checkpoint, "decoder/layer_norm")
    projection = checkpoint["decoder/projection/weight"]
    graph.linear(x, projection, None, out=graph.output("logits", [1, "R", len(projection)]))
    rows = graph.op("Concat", *present, axis=2)
    graph.reshape(rows, [-1, 2 * n * d], out=graph.output("present", ["R", 2 * n * d]))
    parts = [graph.slice(attention[layer], 0, head, head + 1) for layer, head in alignment_heads]
    graph.mean(graph.op("Concat", *parts, axis=0), [0, 3], out=graph.output("alignment", ["n", "L"]))
    graph.save(path)


def _self_attention(
    graph: _Graph, x: str, checkpoint: Checkpoint, layer: str, *, past: tuple[Sequence[str], int], mask: str
) -> tuple[str, list[str]]:
    """Return the new residual and this layer's new key and value rows, each (1, R, d)."""
    d, heads, name = checkpoint.d_model, checkpoint.n_heads, f"{layer}/self_attention"
    y = graph.layer_norm(x, checkpoint, f"{name}/layer_norm")
    query = _split_heads(graph, _project(graph, y, checkpoint, f"{name}/linear_0", "query"), heads, QUERIES_T)
    new = [
        _project(graph, y, checkpoint, f"{name}/linear_0", "key"),
        _project(graph, y, checkpoint, f"{name}/linear_0", "value"),
    ]
    caches, start = past
    joined = []
    for rows, offset, order in ((new[0], start, KEYS), (new[1], start + d, VALUES_T)):
        old = [graph.reshape(graph.slice(cache, 1, offset, offset + d), [1, -1, d]) for cache in caches]
        joined.append(_split_heads(graph, graph.op("Concat", *old, rows, axis=1), heads, order))
    scores = graph.op("Add", graph.op("MatMul", joined[0], query), mask)  # (1, h, T, R)
    attended = graph.op("MatMul", joined[1], graph.op("Softmax", scores, axis=2))
    attended = graph.reshape(graph.transpose(attended, [0, 3, 1, 2]), [1, -1, d])
    return graph.op("Add", x, graph.linear(attended, *_linear(checkpoint, f"{name}/linear_1"))), new


def _cross_attention(
    graph: _Graph, x: str, checkpoint: Checkpoint, layer: str, *, audio: tuple[str, str], live: str
) -> tuple[str, str]:
    """Return the new residual and the attention probabilities (h, n, L, 1).

    Heads come before rows, so that a head's keys stay near the core while all rows use them. Rows beyond
    the live ones attend to nothing.
    """
    (key, value), d, name = audio, checkpoint.d_model, f"{layer}/attention"
    y = graph.layer_norm(x, checkpoint, f"{name}/layer_norm")
    query = _project(graph, y, checkpoint, f"{name}/linear_0", "query")
    query = graph.reshape(query, [-1, checkpoint.n_heads, HEAD_SIZE, 1])
    query = graph.transpose(graph.as_long_as(query, 0, live, 0), [1, 0, 2, 3])
    probabilities = graph.op("Softmax", graph.op("MatMul", key, query), axis=2)
    attended = graph.transpose(graph.op("MatMul", value, probabilities), [1, 0, 2, 3])  # (n, h, 64, 1)
    nothing = graph.constant(np.zeros((1, 1, d), np.float32))
    attended = graph.op("Concat", graph.reshape(attended, [1, -1, d]), nothing, axis=1)
    attended = graph.as_long_as(attended, 1, x, 1)
    return graph.op("Add", x, graph.linear(attended, *_linear(checkpoint, f"{name}/linear_2"))), probabilities
