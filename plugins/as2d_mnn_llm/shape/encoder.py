"""Describes audio encoders of the Qwen audio models as graphs of MNN operators.

Two front ends: Qwen3-ASR's folds 100 frames into 13 positions with three strided 3x3 convolutions;
Qwen2.5-Omni's (Whisper's) has two convolutions over time, less than 1 % of its work and left out here,
each position taking its two frames through one matrix, and averages pairs of positions at the end. Both
attend within windows of positions only, so their work grows linearly with the length of the audio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError
from as2d_mnn_llm.export.graph import MAX_LAYERS, MAX_SIZE, Graph
from as2d_mnn_llm.export.records import Matrix, Record, WeightFile

FrontEnd = Literal["conv2d", "frames"]
_CHANNELS = 480
_CHUNK_FRAMES, _CHUNK_POSITIONS = 100, 13
_FRAMES_PER_POSITION = 2
_POOLED = 2
_EPS = 1e-5


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """Dimensions of an audio encoder. Raises `ModelError` for ones that cannot be."""

    front_end: FrontEnd
    layers: int
    width: int
    heads: int
    ffn: int
    output: int
    """Width of the language model that reads it."""
    n_mels: int
    window: int
    """Positions that attend to each other."""

    def __post_init__(self) -> None:
        """Check what would make a graph meaningless."""
        if self.front_end not in get_args(FrontEnd):
            raise ModelError(f"front end {self.front_end!r}; expected one of {get_args(FrontEnd)}")
        sizes = (self.layers, self.width, self.heads, self.ffn, self.output, self.n_mels, self.window)
        beyond = self.layers > MAX_LAYERS or max(sizes) > MAX_SIZE
        if min(sizes) < 1 or beyond or self.width % self.heads or self.window % self._step:
            raise ModelError(f"an encoder cannot have these dimensions: {self}")

    @property
    def _step(self) -> int:
        return _CHUNK_POSITIONS if self.front_end == "conv2d" else _POOLED

    @property
    def window_frames(self) -> int:
        """Frames of 10 ms in one window of attention."""
        if self.front_end == "conv2d":
            return self.window // _CHUNK_POSITIONS * _CHUNK_FRAMES
        return self.window * _FRAMES_PER_POSITION

    @property
    def window_tokens(self) -> int:
        """Embeddings that one window gives the language model."""
        return self.window if self.front_end == "conv2d" else self.window // _POOLED


@dataclass(frozen=True, slots=True)
class EncoderWeights:
    """Where an encoder's weights come from, by size: what they are is the caller's affair."""

    matrix: Callable[[int, int], Matrix]
    """Gives a matrix of (rows, columns), bias included."""
    vector: Callable[[int], NDArray[np.float32]]


def build_encoder(shape: EncoderShape, weights: EncoderWeights, file: WeightFile, windows: int) -> Graph:
    """Write an encoder's weights to `file` and return its graph for `windows` windows at once.

    Input `frames`: log-mel of shape (chunks, 1, n_mels, 100) for conv2d, (positions, 2 * n_mels) for
    frames. Output `audio`: (tokens, output).
    """
    return _Encoder(shape, weights, file, windows).build()


@dataclass(slots=True)
class _Encoder:
    shape: EncoderShape
    weights: EncoderWeights
    file: WeightFile
    windows: int

    def build(self) -> Graph:
        graph, shape = Graph(), self.shape
        x = self._fold(graph) if shape.front_end == "conv2d" else self._take_frames(graph)
        for _ in range(shape.layers):
            x = graph.binary("ADD", x, self._attention(graph, x))
            x = graph.binary("ADD", x, self._feed_forward(graph, x))
        if shape.front_end == "frames":
            x = graph.mean(graph.reshape(x, -1, _POOLED, shape.width), 1)
        x = self._norm(graph, x)
        packed = graph.linear(graph.pack(x, shape.width), self._record(shape.output, shape.width))
        graph.rename(graph.unpack(packed, -1, shape.output), "audio")
        return graph

    def _fold(self, graph: Graph) -> int:
        """Fold chunks of 100 frames into 13 positions each."""
        chunks = self.windows * self.shape.window // _CHUNK_POSITIONS
        x = graph.input("frames", (chunks, 1, self.shape.n_mels, _CHUNK_FRAMES))
        x = graph.convert(x, "NCHW", "NC4HW4")
        inner = 1
        for _ in range(3):
            kernel = self.weights.vector(_CHANNELS * inner * 9)
            place = self.file.plain(kernel, self.weights.vector(_CHANNELS))
            x = graph.unary("GELU", graph.convolution(x, inner, _CHANNELS, place))
            inner = _CHANNELS
        x = graph.permute(graph.convert(x, "NC4HW4", "NCHW"), 0, 3, 1, 2)
        columns = _CHANNELS * -(-self.shape.n_mels // 8)
        packed = graph.linear(graph.pack(x, columns), self._record(self.shape.width, columns))
        return graph.unpack(packed, -1, self.shape.width)

    def _take_frames(self, graph: Graph) -> int:
        columns = _FRAMES_PER_POSITION * self.shape.n_mels
        x = graph.input("frames", (self.windows * self.shape.window, columns))
        packed = graph.linear(graph.pack(x, columns), self._record(self.shape.width, columns))
        return graph.unpack(packed, -1, self.shape.width)

    def _attention(self, graph: Graph, x: int) -> int:
        shape = self.shape
        packed = graph.pack(self._norm(graph, x), shape.width)
        split = (self.windows, shape.window, shape.heads, shape.width // shape.heads)
        q, k, v = (
            graph.permute(
                graph.unpack(graph.linear(packed, self._record(shape.width, shape.width)), *split), 0, 2, 1, 3
            )
            for _ in range(3)
        )
        scores = graph.op("Softmax", "Axis", {"axis": -1}, graph.product(q, k, transposed=True))
        mixed = graph.permute(graph.product(scores, v, transposed=False), 0, 2, 1, 3)
        packed = graph.linear(graph.pack(mixed, shape.width), self._record(shape.width, shape.width))
        return graph.unpack(packed, -1, shape.width)

    def _feed_forward(self, graph: Graph, x: int) -> int:
        shape = self.shape
        packed = graph.pack(self._norm(graph, x), shape.width)
        inner = graph.unary("GELU", graph.linear(packed, self._record(shape.ffn, shape.width)))
        return graph.unpack(graph.linear(inner, self._record(shape.width, shape.ffn)), -1, shape.width)

    def _norm(self, graph: Graph, x: int) -> int:
        place = self.file.norm(self.weights.vector(self.shape.width), self.shape.width)
        main = {"axis": [-1], "epsilon": _EPS, "group": 1, "useRMSNorm": False, "external": place}
        return graph.op("LayerNorm", "LayerNorm", main, x)

    def _record(self, out: int, inner: int) -> Record:
        return self.file.matrix(self.weights.matrix(out, inner), out, inner)
