"""Builds the OpenVINO graphs of a Whisper: an encoder, and a decoder step of a fixed layout.

The decoder's new keys and values are written to **their own positions** among the cached ones before
attention, and what lies behind a row's position is masked. So a row meets the same numbers in the same order
whatever runs with it, and its bits do not depend on other rows, on the number of positions or on threads.
One row alone takes other kernels; it is padded to two.

Weights are bytes with a scale for each row: OpenVINO recognises the pattern and quantises activations in
groups (docs/decisions/0016-openvino.md). Keys and values are kept in the engine's own type, as converting
those of 30 s of audio in each pass would take as long as the pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from as2d_whisper import network
from as2d_whisper.backends.backend import AlignmentHeads, weight_bits
from as2d_whisper.backends.openvino.runtime import openvino
from as2d_whisper.checkpoint import Checkpoint
from as2d_whisper.layout import HEAD_SIZE
from as2d_whisper.network import LAYER_NORM_EPSILON, Array

_WEIGHT_BITS = (8, 16, 32)
Node = Any
"""A node of OpenVINO, which has no types."""
_HEADS = [0, 2, 1, 3]
"""Order of (1, T, heads, 64) that puts heads first; and back."""


class _Graph:
    """Makes nodes; keeps inputs and outputs with their names."""

    def __init__(self, n_heads: int, bits: int, precision: str) -> None:
        """Weights have so many `bits`; keys and values are kept in `precision`, "bf16" or "f32"."""
        self._ops = openvino().opset15
        self._n_heads = n_heads
        self._bits = bits
        self._precision = precision
        self._inputs: list[Node] = []
        self._outputs: list[Node] = []

    def input(self, name: str, shape: Sequence[int], kind: str = "f32") -> Node:
        """Return an input; -1 stands for any length. `kind` is a type of OpenVINO."""
        ov = openvino()
        node = self._ops.parameter(ov.PartialShape(list(shape)), getattr(ov.Type, kind), name=name)
        node.output(0).get_tensor().set_names({name})
        self._inputs.append(node)
        return node

    def cached_input(self, name: str, shape: Sequence[int]) -> Node:
        """Return an input in the type that keys and values are kept in."""
        return self._ops.convert(self.input(name, shape, self._precision), "f32")

    def output(self, name: str, node: Node) -> None:
        """Make a node an output."""
        result = self._ops.result(node)
        result.output(0).get_tensor().set_names({name})
        self._outputs.append(result)

    def cached_output(self, name: str, node: Node) -> None:
        """Make a node an output in the type that keys and values are kept in."""
        self.output(name, self._ops.convert(node, self._precision))

    def constant(self, array: NDArray[np.generic]) -> Node:
        return self._ops.constant(np.ascontiguousarray(array))

    def integers(self, *values: int) -> Node:
        return self.constant(np.array(values, np.int64))

    def linear(self, x: Node, weight: Array, bias: Array | None) -> Node:
        product = self._ops.matmul(x, self._weight(weight), False, True)
        return product if bias is None else self._ops.add(product, self.constant(bias))

    def project(self, x: Node, parts: Sequence[tuple[Array, Array | None]]) -> list[Node]:
        """As one product: activations are quantised once."""
        weight = np.concatenate([weight for weight, _ in parts])
        zeros = np.zeros(len(weight) // len(parts), np.float32)
        bias = np.concatenate([zeros if bias is None else bias for _, bias in parts])
        joined = self.linear(x, weight, bias)
        if len(parts) == 1:
            return [joined]
        return list(self._ops.split(joined, self._ops.constant(np.int64(2)), len(parts)).outputs())

    def _weight(self, weight: Array) -> Node:
        if self._bits == 32:
            return self.constant(weight)
        if self._bits == 16:
            return self._ops.convert(self.constant(weight.astype(np.float16)), "f32")
        largest = np.abs(weight).max(axis=1, keepdims=True)
        scale = np.where(largest == 0, 1, largest / 127).astype(np.float32)
        bytes_ = np.clip(np.rint(weight / scale), -127, 127).astype(np.int8)
        return self._ops.multiply(self._ops.convert(self.constant(bytes_), "f32"), self.constant(scale))

    def layer_norm(self, x: Node, gamma: Array, beta: Array) -> Node:
        y = self._ops.mvn(x, self.integers(-1), True, LAYER_NORM_EPSILON, "inside_sqrt")
        return self._ops.add(self._ops.multiply(y, self.constant(gamma)), self.constant(beta))

    def gelu(self, x: Node) -> Node:
        return self._ops.gelu(x, "tanh")

    def add(self, x: Node, y: Node) -> Node:
        return self._ops.add(x, y)

    def split_heads(self, x: Node) -> Node:
        """(1, T, d) to (1, heads, T, 64)."""
        rows = self._ops.reshape(x, self.integers(0, -1, self._n_heads, HEAD_SIZE), True)
        return self._ops.transpose(rows, self.integers(*_HEADS))

    def join_heads(self, x: Node) -> Node:
        """(1, heads, T, 64) to (1, T, d)."""
        rows = self._ops.transpose(x, self.integers(*_HEADS))
        return self._ops.reshape(rows, self.integers(0, -1, self._n_heads * HEAD_SIZE), True)

    def save(self, name: str, path: Path) -> None:
        """Write the graph to `path` (.xml), and its weights beside it."""
        model = openvino().Model(self._outputs, self._inputs, name)
        openvino().save_model(model, str(path), compress_to_fp16=False)


class _Encoder(_Graph):
    """Makes what only an encoder has."""

    def convolve(self, x: Node, weight: Array, bias: Array, stride: int) -> Node:
        y = self._ops.convolution(x, self.constant(weight), [stride], [1], [1], [1])
        return self._ops.add(y, self.constant(bias.reshape(1, -1, 1)))

    def as_rows(self, x: Node) -> Node:
        return self._ops.transpose(x, self.integers(0, 2, 1))

    def add_positions(self, x: Node, positions: Array) -> Node:
        length = self._ops.gather(self._ops.shape_of(x), self.integers(1), self.integers(0))
        zero, one = self.integers(0), self.integers(1)
        first = self._ops.slice(self.constant(positions[None]), zero, length, one, one)
        return self._ops.add(x, first)

    def attend(self, query: Node, key: Node, value: Node) -> Node:
        query, key, value = (self.split_heads(rows) for rows in (query, key, value))
        probabilities = self._ops.softmax(self._ops.matmul(query, key, False, True), -1)
        return self.join_heads(self._ops.matmul(probabilities, value, False, False))


def build_encoder(checkpoint: Checkpoint, path: Path, *, bits: int, precision: str) -> None:
    """Write the encoder: `mel` (1, n_mels, 2 L) to cross-attention keys and values of each decoder layer.

    Outputs `key_i` and `value_i` (1, h, L, 64), for any L up to a full window's.
    """
    graph = _Encoder(checkpoint.n_heads, bits, precision)
    mel = graph.input("mel", [1, checkpoint.n_mels, -1])
    for index, (key, value) in enumerate(network.encode(graph, checkpoint, mel)):
        graph.cached_output(f"key_{index}", graph.split_heads(key))
        graph.cached_output(f"value_{index}", graph.split_heads(value))
    graph.save("encoder", path)


class _Decoder(_Graph):
    """Makes the attention of a decoder, and its inputs: the cache, positions, mask, the encoder's output."""

    def __init__(self, checkpoint: Checkpoint, bits: int, precision: str) -> None:
        super().__init__(checkpoint.n_heads, bits, precision)
        self.x = self.input("x", [1, -1, checkpoint.d_model])
        self._positions = self.input("positions", [-1], "i32")
        self._mask = self.input("mask", [1, 1, -1, -1])
        self._probabilities: list[Node] = []

    def attend_text(self, layer: int, query: Node, key: Node, value: Node) -> Node:
        keys, values = (
            self._with_new_rows(f"{kind}_{layer}", rows) for kind, rows in (("key", key), ("value", value))
        )
        scores = self._ops.matmul(self.split_heads(query), keys, False, True)
        probabilities = self._ops.softmax(self._ops.add(scores, self._mask), -1)
        return self.join_heads(self._ops.matmul(probabilities, values, False, False))

    def _with_new_rows(self, name: str, rows: Node) -> Node:
        """Return all positions, the new rows at theirs; rounded like those that were cached before."""
        new = self._ops.convert(self.split_heads(rows), self._precision)
        self.output(f"new_{name}", new)
        cached = self.input(f"text_{name}", [1, self._n_heads, -1, HEAD_SIZE], self._precision)
        updated = self._ops.scatter_update(cached, self._positions, new, self.integers(2))
        return self._ops.convert(updated, "f32")

    def attend_audio(self, layer: int, query: Node) -> Node:
        shape = [1, self._n_heads, -1, HEAD_SIZE]
        key, value = (self.cached_input(f"audio_{kind}_{layer}", shape) for kind in ("key", "value"))
        scores = self._ops.matmul(self.split_heads(query), key, False, True)
        probabilities = self._ops.softmax(scores, -1)
        self._probabilities.append(probabilities)
        return self.join_heads(self._ops.matmul(probabilities, value, False, False))

    def alignment(self, heads: AlignmentHeads) -> Node:
        """Return the mean probabilities of some (layer, head), shape (1, rows, frames)."""
        ops = self._ops
        parts = [
            ops.gather(self._probabilities[layer], self.integers(head), self.integers(1))
            for layer, head in heads
        ]
        return ops.reduce_mean(ops.concat(parts, 1), self.integers(1), False)


def build_decoder(
    checkpoint: Checkpoint,
    alignment_heads: AlignmentHeads,
    path: Path,
    *,
    bits: int,
    precision: str,
) -> None:
    """Write one decoder step over R new rows among T positions.

    Inputs: `x` (1, R, d) embedded tokens; `positions` (R,), where each belongs; `mask` (1, 1, R, T), 0 or a
    large negative number; `text_key_i` and `text_value_i` (1, h, T, 64), the cached ones; `audio_key_i` and
    `audio_value_i` (1, h, L, 64) from the encoder.
    Outputs: `logits` (1, R, vocab); `new_key_i` and `new_value_i` (1, h, R, 64); `alignment` (1, R, L), the
    mean cross-attention probabilities of the alignment heads, at least one.
    """
    graph = _Decoder(checkpoint, bits, precision)
    graph.output("logits", network.decode(graph, checkpoint, graph.x))
    graph.output("alignment", graph.alignment(alignment_heads))
    graph.save("decoder", path)


def write_graphs(
    checkpoint: Checkpoint, heads: AlignmentHeads, destination: Path, options: Mapping[str, object]
) -> None:
    """Write `encoder.xml` and `decoder.xml` with their weights. Raises `ModelError`."""
    encoder_bits = weight_bits(options, "encoder_bits", 8, _WEIGHT_BITS)
    decoder_bits = weight_bits(options, "decoder_bits", 8, _WEIGHT_BITS)
    precision = str(options["precision"])
    build_encoder(checkpoint, destination / "encoder.xml", bits=encoder_bits, precision=precision)
    build_decoder(checkpoint, heads, destination / "decoder.xml", bits=decoder_bits, precision=precision)
