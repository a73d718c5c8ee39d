"""Builds the two ONNX graphs of a Qwen3-ASR audio encoder: convolutions of chunks, and transformer layers.

They are apart because what pads the last chunk is dropped between them: then no mask is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Weight = Callable[[str], NDArray[np.float32]]
"""Gives a weight of the encoder by its name in the checkpoint."""

_OPSET = 20  # first with a native Gelu
_EPSILON = 1e-5  # PyTorch's default for LayerNorm


class _Graph:
    """A growing list of nodes; every method returns the name of its output."""

    def __init__(self, weight: Weight) -> None:
        self._weight = weight
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, out: str | None = None, **attributes: float | list[int]) -> str:
        name = out or f"t{len(self._nodes)}"
        node = helper.make_node(kind, list(inputs), [name])
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self._nodes.append(node)
        return name

    def constant(self, array: NDArray[np.generic]) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def parameters(self, name: str) -> list[str]:
        return [self.constant(self._weight(f"{name}.{kind}")) for kind in ("weight", "bias")]

    def linear(self, x: str, name: str, out: str | None = None) -> str:
        product = self.product(x, name)
        return self.op("Add", product, self.constant(self._weight(f"{name}.bias")), out=out)

    def product(self, x: str, name: str) -> str:
        return self.op("MatMul", x, self.constant(self._weight(f"{name}.weight").T))

    def norm(self, x: str, name: str) -> str:
        return self.op("LayerNormalization", x, *self.parameters(name), axis=-1, epsilon=_EPSILON)

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(np.array(shape, np.int64)))

    def save(self, path: Path, inputs: dict[str, Sequence[int | str]]) -> None:
        given = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()
        ]
        output = helper.make_tensor_value_info("audio_embeds", TensorProto.FLOAT, [1, "n", "width"])
        graph = helper.make_graph(self._nodes, "audio", given, [output], self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
        onnx.save(model, str(path))


def build_front(weight: Weight, mels: int, path: Path) -> None:
    """Write the graph that makes of chunks (n, 1, mels, frames) hidden states (1, n * tokens, width).

    Its second input are the positions of a chunk's tokens, shape (tokens, width).
    """
    graph = _Graph(weight)
    x = "input_features"
    for name in ("conv2d1", "conv2d2", "conv2d3"):
        x = graph.op(
            "Conv", x, *graph.parameters(name), strides=[2, 2], pads=[1, 1, 1, 1], kernel_shape=[3, 3]
        )
        x = graph.op("Gelu", x)
        mels = (mels + 1) // 2
    x = graph.op("Transpose", x, perm=[0, 3, 1, 2])
    channels = len(weight("conv2d3.bias"))
    tokens_first = graph.op("Reshape", x, graph.constant(np.array([0, 0, channels * mels], np.int64)))
    x = graph.op("Add", graph.product(tokens_first, "conv_out"), "positions")
    width = len(weight("conv_out.weight"))
    graph.op("Reshape", x, graph.constant(np.array([1, -1, width], np.int64)), out="audio_embeds")
    graph.save(path, {"input_features": ["n", 1, "mels", "frames"], "positions": ["tokens", width]})


def build_layers(weight: Weight, layers: int, heads: int, path: Path) -> None:
    """Write the graph from hidden states (1, n, width) to embeddings (1, n, hidden of the decoder)."""
    graph = _Graph(weight)
    x = "hidden_states"
    for layer in range(layers):
        x = graph.op("Add", x, _attention(graph, x, f"layers.{layer}", weight, heads))
        y = graph.norm(x, f"layers.{layer}.final_layer_norm")
        y = graph.op("Gelu", graph.linear(y, f"layers.{layer}.fc1"))
        x = graph.op("Add", x, graph.linear(y, f"layers.{layer}.fc2"))
    x = graph.op("Gelu", graph.linear(graph.norm(x, "ln_post"), "proj1"))
    graph.linear(x, "proj2", out="audio_embeds")
    graph.save(path, {"hidden_states": [1, "n", len(weight("ln_post.bias"))]})


def _attention(graph: _Graph, x: str, layer: str, weight: Weight, heads: int) -> str:
    width = len(weight(f"{layer}.self_attn_layer_norm.bias"))
    y = graph.norm(x, f"{layer}.self_attn_layer_norm")
    orders = {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]}
    q, k, v = (
        graph.op(
            "Transpose",
            graph.reshape(graph.linear(y, f"{layer}.self_attn.{name}_proj"), 1, -1, heads, width // heads),
            perm=order,
        )
        for name, order in orders.items()
    )
    scale = graph.constant(np.array((width // heads) ** -0.5, np.float32))
    scores = graph.op("Softmax", graph.op("MatMul", graph.op("Mul", q, scale), k), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", scores, v), perm=[0, 2, 1, 3])
    return graph.linear(graph.reshape(mixed, 1, -1, width), f"{layer}.self_attn.out_proj")
