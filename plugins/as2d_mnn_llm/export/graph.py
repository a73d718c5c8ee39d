"""Describes decoder-only language models as graphs of MNN operators, in the JSON form of its model format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from as2d_cli.plugin import ModelError
from as2d_mnn_llm.export.records import Record

Architecture = Literal["llama", "qwen2", "qwen3", "gemma3"]
_TO_THE_END = 1 << 30
MAX_LAYERS, MAX_SIZE = 1024, 1 << 20
"""Far beyond all models: work and memory go by what a file claims."""


@dataclass(frozen=True, slots=True)
class Sliding:
    """How layers that see only the nearest tokens alternate with layers that see all."""

    window: int
    """Tokens that a layer of the first kind sees, its own included."""
    period: int
    """Every so many layers one sees all, the last of the period."""
    rope_theta: float
    """Of the layers that do not; the shape's is that of those that see all."""
    stretch: float = 1.0
    """Positions are divided by this in the layers that see all."""

    def __post_init__(self) -> None:
        """Check what would make a graph meaningless."""
        sizes = (self.window, self.period, self.rope_theta, self.stretch)
        if not all(1 <= size < math.inf for size in sizes) or self.window > MAX_SIZE:
            raise ModelError(f"a decoder cannot have such windows: {self}")

    def sees_all(self, layer: int) -> bool:
        """Tell whether the layer, counted from 0, sees all tokens."""
        return layer % self.period == self.period - 1


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """Dimensions of a decoder-only language model. Raises `ModelError` for ones that cannot be."""

    architecture: Architecture
    """llama: nothing special; qwen2: bias on q, k, v; qwen3: RMS norm on each head of q and k; gemma3: that,
    a norm of what attention and feed-forward add, GELU in the place of SiLU, and scaled embeddings."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    rope_theta: float
    norm_eps: float
    tied: bool
    """Whether the head is also the embedding of tokens."""
    sliding: Sliding | None = None
    """None: all layers see all tokens."""

    @property
    def norms_heads(self) -> bool:
        """Whether each head of q and k is normalised."""
        return self.architecture in {"qwen3", "gemma3"}

    def __post_init__(self) -> None:
        """Check what would make a graph meaningless."""
        if self.architecture not in get_args(Architecture):
            known = ", ".join(get_args(Architecture))
            raise ModelError(f"architecture {self.architecture!r} is not supported", f"supported: {known}")
        sizes = (self.layers, self.hidden, self.heads, self.kv_heads, self.head_dim, self.ffn, self.vocab)
        if min(sizes) < 1 or self.heads % self.kv_heads or self.head_dim % 2:
            raise ModelError(f"a decoder cannot have these dimensions: {self}")
        if self.layers > MAX_LAYERS or max(sizes) > MAX_SIZE:
            raise ModelError(f"a decoder of these dimensions is beyond all that there are: {self}")
        if not (1 <= self.rope_theta < math.inf and 0 <= self.norm_eps < 1):
            raise ModelError(f"a decoder cannot have these dimensions: {self}")


@dataclass(slots=True)
class Graph:
    """Operators in order; tensors are known by number."""

    ops: list[dict[str, Any]] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)

    def op(self, kind: str, main_type: str, main: dict[str, Any], *inputs: int, name: str = "") -> int:
        """Append an operator with one output; return the output's number."""
        output = len(self.tensors)
        self.tensors.append(name or f"{kind}_{output}")
        self.ops.append(
            {
                "type": kind,
                "main_type": main_type,
                "main": main,
                "name": self.tensors[-1],
                "inputIndexes": list(inputs),
                "outputIndexes": [output],
                "defaultDimentionFormat": "NHWC",
            }
        )
        return output

    def document(self, outputs: Sequence[str]) -> dict[str, Any]:
        """Return the graph as MNN's JSON reader takes it."""
        return {
            "bizCode": "as2d",
            "oplists": self.ops,
            "outputName": list(outputs),
            "preferForwardType": "CPU",
            "sourceType": "ONNX",
            "tensorName": self.tensors,
            "tensorNumber": len(self.tensors),
            "usage": "INFERENCE",
        }

    def input(self, name: str, dims: Sequence[int], kind: str = "DT_FLOAT") -> int:
        """Add an input; -1 stands for a size that varies."""
        return self.op("Input", "Input", {"dims": list(dims), "dtype": kind, "dformat": "NCHW"}, name=name)

    def integers(self, *values: int) -> int:
        """Add a constant vector of int32."""
        blob = {"dims": [len(values)], "dataFormat": "NCHW", "dataType": "DT_INT32", "int32s": list(values)}
        return self.op("Const", "Blob", blob)

    def floats(self, values: Sequence[float], dims: Sequence[int]) -> int:
        """Add a constant tensor of float32."""
        blob = {"dims": list(dims), "dataFormat": "NCHW", "dataType": "DT_FLOAT", "float32s": list(values)}
        return self.op("Const", "Blob", blob)

    def reshape(self, x: int, *dims: int) -> int:
        """Reshape; one of `dims` may be -1."""
        return self.op("Reshape", "Reshape", {"dims": list(dims), "dimType": "NCHW"}, x)

    def binary(self, kind: str, a: int, b: int) -> int:
        """Add an element-wise operation of two tensors."""
        return self.op("BinaryOp", "BinaryOp", {"opType": kind, "T": "DT_FLOAT", "activationType": 0}, a, b)

    def unary(self, kind: str, x: int) -> int:
        """Add an element-wise function."""
        return self.op("UnaryOp", "UnaryOp", {"opType": kind, "T": "DT_FLOAT"}, x)

    def concat(self, axis: int, *parts: int) -> int:
        """Join tensors along `axis`."""
        return self.op("Concat", "Axis", {"axis": axis}, *parts)

    def slice(self, x: int, begin: int, end: int, axis: int) -> int:
        """Take a range along one axis; `begin`, `end` and `axis` are tensors of one integer."""
        main = {
            "Index": "DT_INVALID",
            "T": "DT_INVALID",
            "beginMask": 0,
            "endMask": 0,
            "ellipsisMask": 0,
            "newAxisMask": 0,
            "shrinkAxisMask": 0,
            "fromType": 1,
        }
        return self.op("StridedSlice", "StridedSliceParam", main, x, begin, end, axis)

    def rms_norm(self, x: int, external: list[int], eps: float) -> int:
        """Normalise the last axis by its root mean square, with the gain that `external` refers to."""
        main = {"axis": [-1], "epsilon": eps, "group": 1, "useRMSNorm": True, "external": external}
        return self.op("LayerNorm", "LayerNorm", main, x)

    def pack(self, x: int, columns: int) -> int:
        """Bring rows of `columns` values into the layout that convolutions work in."""
        return self.convert(self.reshape(x, -1, columns, 1, 1), "NCHW", "NC4HW4")

    def unpack(self, x: int, *dims: int) -> int:
        """Bring the rows of a convolution back to an ordinary tensor."""
        return self.reshape(self.convert(x, "NC4HW4", "NCHW"), *dims)

    def linear(self, packed: int, record: Record) -> int:
        """Multiply packed rows with the matrix that `record` refers to; the result is packed."""
        quantised = {
            "quantScale": 1.0, "scaleIn": 0.0, "scaleOut": 0.0, "useInt32": False, "has_scaleInt": False,
            "shapeInt32": record.wide, "type": 1, "aMaxOrBits": record.bits, "aMin": 1,
            "readType": record.out * (record.inner // record.block), "weightSize": 0,
        }  # fmt: skip
        main = {"common": _convolution(record.inner, record.out), "quanParameter": quantised}
        return self.op("Convolution", "Convolution2D", {**main, "external": record.external}, packed)

    def convolution(self, packed: int, inner: int, out: int, external: list[int]) -> int:
        """Convolve packed images by 3 x 3, every second place of both directions, with float32 weights."""
        common = _convolution(inner, out) | {
            "kernelX": 3, "kernelY": 3, "strideX": 2, "strideY": 2, "padX": 1, "padY": 1
        }  # fmt: skip
        return self.op("Convolution", "Convolution2D", {"common": common, "external": external}, packed)

    def product(self, a: int, b: int, *, transposed: bool) -> int:
        """Multiply matrices in the last two axes; with `transposed` the second is turned before."""
        return self.op("BatchMatMul", "BatchMatMulParam", {"adjX": False, "adjY": transposed}, a, b)

    def permute(self, x: int, *axes: int) -> int:
        """Reorder axes."""
        return self.op("Permute", "Permute", {"dims": list(axes)}, x)

    def mean(self, x: int, axis: int) -> int:
        """Average over an axis, which goes away."""
        main = {"operation": "MEAN", "dim": [axis], "coeff": 0.0, "keepDims": False, "dType": "DT_FLOAT"}
        return self.op("Reduction", "ReductionParam", main, x)

    def convert(self, x: int, source: str, dest: str) -> int:
        """Change the memory layout."""
        return self.op("ConvertTensor", "TensorConvertInfo", {"source": source, "dest": dest}, x)

    def rename(self, tensor: int, name: str) -> None:
        """Give the newest tensor a name by which it can be asked for."""
        self.tensors[tensor] = self.ops[-1]["name"] = name


def _convolution(inner: int, out: int) -> dict[str, Any]:
    return {
        "dilateX": 1, "dilateY": 1, "strideX": 1, "strideY": 1, "kernelX": 1, "kernelY": 1,
        "padX": 0, "padY": 0, "group": 1, "padMode": "CAFFE", "relu": False, "relu6": False,
        "inputCount": inner, "outputCount": out, "hasOutputShape": False,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parts:
    """Where everything that a decoder needs lies in its weight file, by the names of `export`."""

    matrices: dict[str, Record]
    norms: dict[str, list[int]]


def build_decoder(shape: DecoderShape, parts: Parts) -> Graph:
    """Return the graph of a decoder as the LLM engine runs it.

    Inputs: `input_ids` are embeddings (n, 1, hidden), then `attention_mask`, `position_ids` (1, n) and
    `logits_index`, the first row whose logits are wanted. Output: `logits`.
    """
    return _Decoder(shape, parts).build()


@dataclass(frozen=True, slots=True)
class _Sight:
    """Which tokens a layer sees, and how they are turned: tensors."""

    mask: int
    cos: int
    sin: int


class _Decoder:
    def __init__(self, shape: DecoderShape, parts: Parts) -> None:
        self._shape = shape
        self._parts = parts
        self._graph = graph = Graph()
        self._embedded = graph.input("input_ids", (-1, 1, shape.hidden))
        # With windows, MNN's engine gives two masks: of all tokens, and of the nearest.
        mask = graph.input("attention_mask", (2, 1, 1, -1, -1) if shape.sliding else (1, 1, -1, -1))
        positions = graph.input("position_ids", (1, -1), "DT_INT32")
        self._wanted = graph.input("logits_index", (1,), "DT_INT32")
        self._end, self._rows_axis = graph.integers(_TO_THE_END), graph.integers(1)
        self._start, self._half = graph.integers(0), graph.integers(shape.head_dim // 2)
        self._last_axis = graph.integers(3)
        if (sliding := shape.sliding) is None:
            self._all = self._near = _Sight(mask, *self._rotation(positions, shape.rope_theta))
        else:
            one, two = self._rows_axis, graph.integers(2)
            full, near = (
                graph.slice(mask, self._start, one, self._start),
                graph.slice(mask, one, two, self._start),
            )
            self._all = _Sight(full, *self._rotation(positions, shape.rope_theta, sliding.stretch))
            self._near = _Sight(near, *self._rotation(positions, sliding.rope_theta))

    def build(self) -> Graph:
        graph, shape = self._graph, self._shape
        x = graph.reshape(self._embedded, 1, -1, shape.hidden)
        if shape.architecture == "gemma3":
            x = graph.binary("MUL", x, graph.floats([math.sqrt(shape.hidden)], (1,)))
        for layer in range(shape.layers):
            x = graph.binary("ADD", x, self._attention(x, layer))
            x = graph.binary("ADD", x, self._feed_forward(x, layer))
        x = graph.slice(x, self._wanted, self._end, self._rows_axis)
        packed = graph.pack(self._norm(x, "final_norm"), shape.hidden)
        logits = graph.unpack(graph.linear(packed, self._parts.matrices["head"]), 1, -1, shape.vocab)
        graph.rename(logits, "logits")
        return graph

    def _rotation(self, positions: int, theta: float, stretch: float = 1.0) -> tuple[int, int]:
        """Return cos and signed sin of the rotary angles, each (1, n, 1, head_dim)."""
        graph, half = self._graph, self._shape.head_dim // 2
        rates = theta ** (-np.arange(half, dtype=np.float64) / half) / stretch
        rates_32 = [float(rate) for rate in rates.astype(np.float32)]
        cast = graph.op("Cast", "CastParam", {"srcT": "DT_INT32", "dstT": "DT_FLOAT"}, positions)
        angles = graph.binary(
            "MUL", graph.reshape(cast, 1, -1, 1, 1), graph.floats(rates_32, (1, 1, 1, half))
        )
        cos, sin = graph.unary("COS", angles), graph.unary("SIN", angles)
        return graph.concat(3, cos, cos), graph.concat(3, graph.unary("NEG", sin), sin)

    def _attention(self, x: int, layer: int) -> int:
        graph, shape = self._graph, self._shape
        packed = graph.pack(self._norm(x, f"{layer}.input_norm"), shape.hidden)
        heads = {"q": shape.heads, "k": shape.kv_heads, "v": shape.kv_heads}
        q, k, v = (
            graph.unpack(
                graph.linear(packed, self._parts.matrices[f"{layer}.{name}"]), 1, -1, n, shape.head_dim
            )
            for name, n in heads.items()
        )
        if shape.norms_heads:
            q, k = self._norm(q, f"{layer}.q_norm"), self._norm(k, f"{layer}.k_norm")
        sight = self._near if shape.sliding and not shape.sliding.sees_all(layer) else self._all
        main = {"kv_cache": True, "layer_index": layer}
        turned = self._rotate(q, sight), self._rotate(k, sight)
        mixed = graph.op("Attention", "AttentionParam", main, *turned, v, sight.mask)
        packed = graph.pack(mixed, shape.heads * shape.head_dim)
        added = graph.unpack(graph.linear(packed, self._parts.matrices[f"{layer}.o"]), 1, -1, shape.hidden)
        return self._norm(added, f"{layer}.attention_norm") if shape.architecture == "gemma3" else added

    def _rotate(self, x: int, sight: _Sight) -> int:
        """Turn the pairs (i, i + head_dim / 2) of every head by the position's angles."""
        graph = self._graph
        first = graph.slice(x, self._start, self._half, self._last_axis)
        second = graph.slice(x, self._half, self._end, self._last_axis)
        swapped = graph.concat(3, second, first)
        return graph.binary("ADD", graph.binary("MUL", x, sight.cos), graph.binary("MUL", swapped, sight.sin))

    def _feed_forward(self, x: int, layer: int) -> int:
        graph, matrices = self._graph, self._parts.matrices
        packed = graph.pack(self._norm(x, f"{layer}.post_norm"), self._shape.hidden)
        gate, up = (graph.linear(packed, matrices[f"{layer}.{name}"]) for name in ("gate", "up"))
        is_gemma = self._shape.architecture == "gemma3"
        if is_gemma:
            inner = graph.binary("MUL", up, graph.unary("GELU", gate))
        else:
            inner = graph.binary("MUL_SILU", up, gate)
        added = graph.unpack(graph.linear(inner, matrices[f"{layer}.down"]), 1, -1, self._shape.hidden)
        return self._norm(added, f"{layer}.ffn_norm") if is_gemma else added

    def _norm(self, x: int, name: str) -> int:
        return self._graph.rms_norm(x, self._parts.norms[name], self._shape.norm_eps)
