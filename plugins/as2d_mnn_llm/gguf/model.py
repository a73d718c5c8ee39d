"""Turns a GGUF file of a language model into what MNN's LLM engine loads, and its tokenizer and chat form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError
from as2d_mnn_llm.chat import write_form
from as2d_mnn_llm.export.decoder import write_decoder
from as2d_mnn_llm.export.graph import Architecture, DecoderShape, Sliding
from as2d_mnn_llm.export.records import Matrix, QuantisedLinear
from as2d_mnn_llm.gguf.blocks import pieces, vector
from as2d_mnn_llm.gguf.file import GgufFile, GgufTensor
from as2d_mnn_llm.gguf.tokenizer import write_tokenizer

_NAMES: Final = {
    **{"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output"},
    **{"gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"},
    **{"input_norm": "attn_norm", "post_norm": "ffn_norm", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm"},
    **{"attention_norm": "post_attention_norm", "ffn_norm": "post_ffw_norm"},
}
"""What GGUF calls the weights of a layer."""
_ARCHITECTURES: Final = ("llama", "qwen2", "qwen3", "gemma3")
_GEMMA_PERIOD: Final = 6
_GEMMA_NEAR_THETA: Final = 10_000.0
_GEMMA_27B_LAYERS: Final = 62
_COMPARED_ROWS: Final = 256
_SAME_SHARE: Final = 0.25
"""Two roundings of one matrix differ by less than this share of its size, different matrices by far more."""


def convert(source: Path, destination: Path) -> None:
    """Convert the one GGUF file in `source`. Raises `ModelError` for one that is broken or not supported."""
    found = sorted(source.glob("*.gguf"))
    if len(found) != 1:
        raise ModelError(f"{source}: {len(found)} GGUF files; expected one")
    file = GgufFile(found[0])
    shape = read_shape(file)
    write_tokenizer(file, destination)
    write_form(file.path, str(file.metadata.get("tokenizer.chat_template", "")), destination)
    write_decoder(shape, GgufWeights(file, shape).weight, destination)


def read_shape(file: GgufFile) -> DecoderShape:
    """Return the dimensions of the model. Raises `ModelError` for what this package does not compute."""
    kind = file.text("general.architecture")
    if kind not in _ARCHITECTURES:
        raise ModelError(
            f"{file.path}: architecture {kind!r} cannot be converted",
            f"use a model of one of these: {', '.join(_ARCHITECTURES)}",
        )
    for key in file.metadata:
        scales = key.startswith(f"{kind}.rope.scaling") and kind != "gemma3"
        if scales or key.startswith(f"{kind}.expert"):
            raise ModelError(f"{file.path}: {key} is not supported", "use a model without it")
    heads, hidden = file.integer(f"{kind}.attention.head_count"), file.integer(f"{kind}.embedding_length")
    if heads < 1 or hidden % heads:
        raise ModelError(f"{file.path}: {heads} heads do not divide {hidden} columns")
    return DecoderShape(
        architecture=cast(Architecture, kind),
        layers=file.integer(f"{kind}.block_count"),
        hidden=hidden,
        heads=heads,
        kv_heads=file.integer(f"{kind}.attention.head_count_kv"),
        head_dim=file.integer(f"{kind}.attention.key_length", hidden // heads),
        ffn=file.integer(f"{kind}.feed_forward_length"),
        vocab=file.tensor("token_embd.weight").shape[0],
        rope_theta=file.number(f"{kind}.rope.freq_base", 10_000.0),
        norm_eps=file.number(f"{kind}.attention.layer_norm_rms_epsilon"),
        tied=_is_tied(file),
        sliding=_sliding(file) if kind == "gemma3" else None,
    )


def _sliding(file: GgufFile) -> Sliding:
    """Return how Gemma 3's layers alternate.

    What files do not tell is the same in all sizes (llama.cpp, `LLM_ARCH_GEMMA3`). Raises `ModelError` for
    the 27B, which scales attention in another way, and for positions that are scaled in another way.
    """
    scaling = file.metadata.get("gemma3.rope.scaling.type", "none")
    if file.integer("gemma3.block_count") == _GEMMA_27B_LAYERS or scaling not in {"none", "linear"}:
        raise ModelError(f"{file.path}: a Gemma 3 that cannot be converted", "use the one with 1B, 4B or 12B")
    return Sliding(
        window=file.integer("gemma3.attention.sliding_window"),
        period=_GEMMA_PERIOD,
        rope_theta=file.number("gemma3.rope.freq_base_swa", _GEMMA_NEAR_THETA),
        stretch=file.number("gemma3.rope.scaling.factor", 1.0),
    )


class GgufWeights:
    """The weights of a file by the names that `export.write_decoder` asks for."""

    def __init__(self, file: GgufFile, shape: DecoderShape) -> None:
        self._file = file
        self._shape = shape

    def weight(self, name: str) -> Matrix | NDArray[np.float32]:
        """Return a weight. Raises `ModelError` if the file lacks it, or stores it in an unknown way."""
        if name == "embedding":
            return pieces(self._file.tensor("token_embd.weight"))
        if name == "head":  # the finer of the two where both are there
            return pieces(self._file.tensors.get("output.weight") or self._file.tensor("token_embd.weight"))
        if name == "final_norm":
            return vector(self._file.tensor("output_norm.weight"))
        layer, part = name.split(".")
        prefix = f"blk.{layer}.{_NAMES[part]}"
        if part.endswith("norm"):
            return vector(self._file.tensor(f"{prefix}.weight"))
        bias = self._file.tensors.get(f"{prefix}.bias")
        tensor = self._file.tensor(f"{prefix}.weight")
        matrix = pieces(tensor, self._half_split(part, tensor))
        return matrix if bias is None else _with_bias(matrix, bias)

    def _half_split(self, part: str, tensor: GgufTensor) -> NDArray[np.intp] | None:
        """Return the order of rows that puts a head's rotary pairs half a head apart; None: they are.

        Files of the llama architecture have pairs side by side (llama.cpp, `LlamaModel.permute`). Raises
        `ModelError` if the tensor has other rows.
        """
        if self._shape.architecture != "llama" or part not in {"q", "k"}:
            return None
        heads = self._shape.heads if part == "q" else self._shape.kv_heads
        if tensor.shape[0] != heads * self._shape.head_dim:
            raise ModelError(f"{self._file.path}: {tensor.name} does not have the rows of {heads} heads")
        rows = np.arange(tensor.shape[0])
        return rows.reshape(heads, -1, 2).swapaxes(1, 2).reshape(-1)


def _with_bias(matrix: Iterator[QuantisedLinear], bias: GgufTensor) -> Iterator[QuantisedLinear]:
    values, done = vector(bias), 0
    for piece in matrix:
        rows = len(piece.codes)
        yield replace(piece, bias=values[done : done + rows])
        done += rows


def _is_tied(file: GgufFile) -> bool:
    """Tell whether head and embedding are one matrix; files keep it twice, rounded in two ways."""
    head, embedding = file.tensors.get("output.weight"), file.tensor("token_embd.weight")
    if head is None:
        return True
    if head.shape != embedding.shape:
        return False
    some = np.linspace(0, head.shape[0] - 1, _COMPARED_ROWS).astype(np.intp)
    one, other = (next(pieces(tensor, some)).values() for tensor in (head, embedding))
    return bool(np.abs(one - other).mean() < _SAME_SHARE * np.abs(one).mean())
