"""Writes a decoder-only language model as a folder that MNN's LLM engine loads, without torch or ONNX.

Names of weights that a source must know: `head` (vocab, hidden) and, unless tied, `embedding` (vocab,
hidden); `final_norm`; for each layer N from 0 `N.q`, `N.k`, `N.v`, `N.o`, `N.gate`, `N.up`, `N.down` and
the norms `N.input_norm`, `N.post_norm`, for qwen3 and gemma3 also `N.q_norm`, `N.k_norm` (head_dim,), for
gemma3 `N.attention_norm`, `N.ffn_norm`. They are asked for one after the other, each once. Rows of q and k
are in half-split order: the pair that rotary position turns together is (i, i + head_dim / 2) of a head.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError, import_native
from as2d_mnn_llm.export.graph import DecoderShape, Parts, build_decoder
from as2d_mnn_llm.export.records import Matrix, WeightFile

Weights = Callable[[str], Matrix | NDArray[np.float32]]
"""Gives the weight of a name: a matrix, or for norms a float32 vector."""

TOKENIZER_STUB = "430 1\n0 1 0\n0 \n1\nIQ==\n"
"""The engine loads no model without a tokenizer; text never passes through it, so one token will do."""


def write_decoder(shape: DecoderShape, weights: Weights, folder: Path) -> None:
    """Write the model to `folder`, which exists. Raises `ModelError` if weights do not fit `shape`.

    Holds one weight, or one piece of it, in memory at a time. The converter prints to the process's
    standard output; callers run it in a child process.
    """
    with (folder / "llm.mnn.weight").open("wb") as file:
        parts = _write_weights(shape, weights, WeightFile(file))
    graph_path = folder / "graph.json"
    graph_path.write_text(json.dumps(build_decoder(shape, parts).document(["logits"])), encoding="utf-8")
    to_mnn("JSON", graph_path, folder / "llm.mnn")
    graph_path.unlink()
    embedding = parts.matrices["head" if shape.tied else "embedding"].embedding
    _write_settings(shape, embedding, folder)


def to_mnn(form: Literal["JSON", "ONNX"], path: Path, mnn_path: Path, *options: str) -> None:
    """Convert one graph, in MNN's own JSON form or in ONNX, to MNN's binary form. Raises `ModelError`."""
    # the wheel's native converter; its script is never used (decisions/0002-converter.md)
    arguments = ["mnnconvert", "-f", form, "--modelFile", str(path), "--MNNModel", str(mnn_path), *options]
    import_native("_tools").mnnconvert(arguments)
    if not mnn_path.is_file() or mnn_path.stat().st_size == 0:
        raise ModelError(f"MNN could not convert {path.name}")


def _write_weights(shape: DecoderShape, weights: Weights, file: WeightFile) -> Parts:
    """Write the embedding first: the engine's reference to it is small then."""
    parts = Parts({}, {})
    matrices, norms = decoder_weights(shape)
    for name, (out, inner) in matrices.items():
        given = weights(name)
        if isinstance(given, np.ndarray):
            raise ModelError(f"weight {name}: a plain array; expected a quantised matrix")
        parts.matrices[name] = file.matrix(given, out, inner)
    for name, size in norms.items():
        gain = weights(name)
        if not isinstance(gain, np.ndarray):
            raise ModelError(f"weight {name}: a quantised matrix; expected a plain vector")
        parts.norms[name] = file.norm(gain, size)
    return parts


def decoder_weights(shape: DecoderShape) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Return (rows, columns) of every matrix and the size of every norm by name, in the order of writing."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    matrices = {} if shape.tied else {"embedding": (shape.vocab, shape.hidden)}
    matrices["head"] = (shape.vocab, shape.hidden)
    norms: dict[str, int] = {}
    for layer in range(shape.layers):
        of_layer = {
            "q": (queries, shape.hidden),
            "k": (keys, shape.hidden),
            "v": (keys, shape.hidden),
            "o": (shape.hidden, queries),
            "gate": (shape.ffn, shape.hidden),
            "up": (shape.ffn, shape.hidden),
            "down": (shape.hidden, shape.ffn),
        }
        matrices |= {f"{layer}.{name}": size for name, size in of_layer.items()}
        norms |= {f"{layer}.{name}": shape.hidden for name in ("input_norm", "post_norm")}
        if shape.architecture == "gemma3":
            norms |= {f"{layer}.{name}": shape.hidden for name in ("attention_norm", "ffn_norm")}
        if shape.norms_heads:
            norms |= {f"{layer}.{name}": shape.head_dim for name in ("q_norm", "k_norm")}
    norms["final_norm"] = shape.hidden
    return matrices, norms


def _write_settings(shape: DecoderShape, embedding: list[int], folder: Path) -> None:
    model = {
        "model_type": shape.architecture,
        "hidden_size": shape.hidden,
        "layer_nums": shape.layers,
        "attention_mask": "float",
        "attention_type": "mix" if shape.sliding else "full",
        "sliding_window": shape.sliding.window if shape.sliding else 0,
        "is_mrope": False,
        "tie_embeddings": embedding,
    }
    files = {"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight", "tokenizer_file": "tokenizer.txt"}
    (folder / "llm_config.json").write_text(json.dumps(model), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(files), encoding="utf-8")
    (folder / "tokenizer.txt").write_text(TOKENIZER_STUB, encoding="utf-8")
