"""What a Whisper computes, layer by layer, for whichever backend compiles it.

The description follows openai/whisper `model.py`. A backend's builder makes its own nodes of each step; how
keys and values are laid out, and where cached ones come from, is its business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from as2d_whisper.checkpoint import Checkpoint
from as2d_whisper.layout import HEAD_SIZE

Node = TypeVar("Node")
Array = NDArray[np.float32]

LAYER_NORM_EPSILON = 1e-5  # PyTorch's default, which Whisper was trained with
_QUERY_SCALE = np.float32(HEAD_SIZE**-0.5)


class Builder(Protocol[Node]):
    """Makes nodes of a graph. Tokens or frames are rows: a node has shape (1, rows, width)."""

    def linear(self, x: Node, weight: Array, bias: Array | None) -> Node:
        """Multiply by `weight` of shape (out, in), transposed, and add the bias."""

    def project(self, x: Node, parts: Sequence[tuple[Array, Array | None]]) -> Sequence[Node]:
        """Return what several linear layers (weight, bias) of one shape make of the same input."""

    def layer_norm(self, x: Node, gamma: Array, beta: Array) -> Node:
        """Normalise each row."""

    def gelu(self, x: Node) -> Node:
        """Apply GELU."""

    def add(self, x: Node, y: Node) -> Node:
        """Add two nodes of one shape."""


class EncoderBuilder(Builder[Node], Protocol[Node]):
    """Also makes what only an encoder has."""

    def convolve(self, x: Node, weight: Array, bias: Array, stride: int) -> Node:
        """Convolve (1, in, frames) with `weight` of shape (out, in, 3), padded by a frame at both ends."""

    def as_rows(self, x: Node) -> Node:
        """Turn (1, width, frames) into rows."""

    def add_positions(self, x: Node, positions: Array) -> Node:
        """Add as many of `positions`, shape (most rows, width), as there are rows."""

    def attend(self, query: Node, key: Node, value: Node) -> Node:
        """Return attention of all rows to all rows; the queries are scaled."""


class DecoderBuilder(Builder[Node], Protocol[Node]):
    """Also makes the two kinds of attention of a decoder. Layers are asked for in order."""

    def attend_text(self, layer: int, query: Node, key: Node, value: Node) -> Node:
        """Return attention of the new rows to the cached tokens and to those of them that came before."""

    def attend_audio(self, layer: int, query: Node) -> Node:
        """Return attention of the new rows to the encoder's keys and values of this layer."""


def encode(build: EncoderBuilder[Node], checkpoint: Checkpoint, mel: Node) -> list[tuple[Node, Node]]:
    """Describe the encoder, from `mel` (1, n_mels, 2 L) to keys and values for each decoder layer.

    Each is (1, L, width), to be split into heads.
    """
    x = mel
    for name, stride in (("encoder/conv1", 1), ("encoder/conv2", 2)):
        x = build.gelu(build.convolve(x, *_linear(checkpoint, name), stride))
    x = build.add_positions(build.as_rows(x), checkpoint["encoder/position_encodings/encodings"])
    for index in range(checkpoint.n_layers("encoder")):
        layer = f"encoder/layer_{index}"
        name = f"{layer}/self_attention"
        y = _layer_norm(build, x, checkpoint, f"{name}/layer_norm")
        query, key, value = build.project(y, _parts(checkpoint, f"{name}/linear_0"))
        attended = build.attend(query, key, value)
        x = build.add(x, build.linear(attended, *_linear(checkpoint, f"{name}/linear_1")))
        x = _feed_forward(build, x, checkpoint, layer)
    x = _layer_norm(build, x, checkpoint, "encoder/layer_norm")
    names = [f"decoder/layer_{i}/attention/linear_1" for i in range(checkpoint.n_layers("decoder"))]
    pairs = (build.project(x, _parts(checkpoint, name)) for name in names)
    return [(key, value) for key, value in pairs]


def decode(build: DecoderBuilder[Node], checkpoint: Checkpoint, x: Node) -> Node:
    """Describe one step of the decoder, from embedded tokens `x` (1, R, width) to logits (1, R, vocab)."""
    for index in range(checkpoint.n_layers("decoder")):
        layer = f"decoder/layer_{index}"
        name = f"{layer}/self_attention"
        y = _layer_norm(build, x, checkpoint, f"{name}/layer_norm")
        query, key, value = build.project(y, _parts(checkpoint, f"{name}/linear_0"))
        attended = build.attend_text(index, query, key, value)
        x = build.add(x, build.linear(attended, *_linear(checkpoint, f"{name}/linear_1")))
        name = f"{layer}/attention"
        y = _layer_norm(build, x, checkpoint, f"{name}/layer_norm")
        (query,) = build.project(y, _parts(checkpoint, f"{name}/linear_0"))
        attended = build.attend_audio(index, query)
        x = build.add(x, build.linear(attended, *_linear(checkpoint, f"{name}/linear_2")))
        x = _feed_forward(build, x, checkpoint, layer)
    x = _layer_norm(build, x, checkpoint, "decoder/layer_norm")
    return build.linear(x, checkpoint["decoder/projection/weight"], None)


def _layer_norm(build: Builder[Node], x: Node, checkpoint: Checkpoint, name: str) -> Node:
    return build.layer_norm(x, checkpoint[f"{name}/gamma"], checkpoint[f"{name}/beta"])


def _feed_forward(build: Builder[Node], x: Node, checkpoint: Checkpoint, layer: str) -> Node:
    y = _layer_norm(build, x, checkpoint, f"{layer}/ffn/layer_norm")
    y = build.gelu(build.linear(y, *_linear(checkpoint, f"{layer}/ffn/linear_0")))
    return build.add(x, build.linear(y, *_linear(checkpoint, f"{layer}/ffn/linear_1")))


def _linear(checkpoint: Checkpoint, name: str) -> tuple[Array, Array]:
    return checkpoint[f"{name}/weight"], checkpoint[f"{name}/bias"]


_PARTS = {1: ("query",), 2: ("key", "value"), 3: ("query", "key", "value")}
"""What a projection joins, by how many times the model's width it gives."""


def _parts(checkpoint: Checkpoint, name: str) -> list[tuple[Array, Array | None]]:
    """Return weight and bias of each part of an attention projection.

    The query carries the softmax scale; Whisper's keys have no bias.
    """
    weight, bias = _linear(checkpoint, name)
    parts = _PARTS[len(weight) // checkpoint.d_model]
    weights, biases = np.split(weight, len(parts)), np.split(bias, len(parts))
    return [
        (w * _QUERY_SCALE, b * _QUERY_SCALE) if part == "query" else (w, None if part == "key" else b)
        for part, w, b in zip(parts, weights, biases, strict=True)
    ]
