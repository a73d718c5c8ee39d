"""Reads Whisper weights: CTranslate2 `model.bin` and Hugging Face safetensors give one `Checkpoint`.

Both formats are flat lists of named arrays, so neither needs torch, and nothing in them is executed.
Array names follow CTranslate2's WhisperSpec (public format, OpenNMT/CTranslate2 `specs/whisper_spec.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError, read_model_json
from as2d_whisper.tensor_files import Array, read_ctranslate2, read_safetensors

_QUANTISED = (np.int8, np.int16)
_MAX_LAYERS = 128


@dataclass(frozen=True)
class Checkpoint:
    """Whisper weights by CTranslate2 name; linear weights have shape (out, in)."""

    tensors: Mapping[str, Array]
    n_heads: int

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Return one array as float32; raises `ModelError` if the checkpoint lacks it."""
        if name not in self.tensors:
            raise ModelError(
                f"the checkpoint has no array {name!r}", "is it a Whisper model of a supported layout?"
            )
        return np.asarray(self.tensors[name], dtype=np.float32)

    def _size(self, name: str, axis: int) -> int:
        shape = self.tensors[name].shape if name in self.tensors else ()  # no copy: this is asked often
        if axis >= len(shape):
            raise ModelError(f"the checkpoint's {name!r} is missing or has shape {shape}")
        return int(shape[axis])

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self._size("decoder/embeddings/weight", 1)

    @property
    def vocab_size(self) -> int:
        """Rows of the token embedding."""
        return self._size("decoder/embeddings/weight", 0)

    @property
    def n_mels(self) -> int:
        """Mel bands of the front end: 80, or 128 from large-v3 on."""
        return self._size("encoder/conv1/weight", 1)

    @property
    def n_audio_positions(self) -> int:
        """Encoder output frames of a full window."""
        return self._size("encoder/position_encodings/encodings", 0)

    @property
    def n_text_positions(self) -> int:
        """Longest token sequence, prompt included."""
        return self._size("decoder/position_encodings/encodings", 0)

    def n_layers(self, part: str) -> int:
        """Layers of `part` ("encoder" or "decoder")."""
        gammas = [f"{part}/layer_{i}/ffn/layer_norm/gamma" for i in range(_MAX_LAYERS)]
        return sum(name in self.tensors for name in gammas)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read `model.bin` or `model.safetensors` in `folder`. Raises `ModelError`."""
    config = read_model_json(folder / "config.json")
    if (folder / "model.bin").is_file():
        path = folder / "model.bin"
        checkpoint = _from_ctranslate2(path, read_ctranslate2(path))
    elif (folder / "model.safetensors").is_file():
        path = folder / "model.safetensors"
        heads = config.get("decoder_attention_heads")
        if type(heads) is not int:
            raise ModelError(f"{folder / 'config.json'}: decoder_attention_heads is missing")
        checkpoint = Checkpoint(dict(_from_huggingface(_Named(path, read_safetensors(path)))), heads)
    else:
        raise ModelError(f"{folder}: no model.bin and no model.safetensors")
    _check(path, checkpoint)
    return checkpoint


def _check(path: Path, checkpoint: Checkpoint) -> None:
    """Raise `ModelError` unless every array is there in its shape: the native converter trusts them."""
    for part in ("encoder", "decoder"):
        if not checkpoint.n_layers(part):
            raise ModelError(f"{path}: no {part} layers", "is it a Whisper model?")
    sizes = (checkpoint.vocab_size, checkpoint.n_mels, checkpoint.n_audio_positions)
    if not all((checkpoint.d_model, checkpoint.n_text_positions, *sizes)):
        raise ModelError(f"{path}: arrays of no size", "is it a Whisper model?")
    if checkpoint.n_heads < 1 or checkpoint.d_model % checkpoint.n_heads:
        raise ModelError(f"{path}: {checkpoint.n_heads} heads of a width of {checkpoint.d_model}")
    for name, shape in expected_arrays(checkpoint):
        array = checkpoint.tensors.get(name)
        if array is None:
            raise ModelError(f"{path}: array {name!r} is missing", "is it a Whisper model?")
        if array.shape != shape or array.dtype.kind != "f":
            raise ModelError(f"{path}: {name!r} is {array.dtype} {array.shape}, expected float {shape}")


def expected_arrays(checkpoint: Checkpoint) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of every array that the graphs are built of."""
    d, vocab = checkpoint.d_model, checkpoint.vocab_size
    yield from (("decoder/embeddings/weight", (vocab, d)), ("decoder/projection/weight", (vocab, d)))
    yield "encoder/position_encodings/encodings", (checkpoint.n_audio_positions, d)
    yield "decoder/position_encodings/encodings", (checkpoint.n_text_positions, d)
    for name, inputs in (("encoder/conv1", checkpoint.n_mels), ("encoder/conv2", d)):
        yield from ((f"{name}/weight", (d, inputs, 3)), (f"{name}/bias", (d,)))
    for part in ("encoder", "decoder"):
        norms = [f"{part}/layer_norm"]
        for index in range(checkpoint.n_layers(part)):
            for name, rows, columns in _LINEAR:
                if part == "decoder" or not name.startswith("attention"):
                    yield f"{part}/layer_{index}/{name}/weight", (rows * d, columns * d)
                    yield f"{part}/layer_{index}/{name}/bias", (rows * d,)
            kinds = ("self_attention", "attention", "ffn") if part == "decoder" else ("self_attention", "ffn")
            norms += [f"{part}/layer_{index}/{kind}/layer_norm" for kind in kinds]
        yield from ((f"{norm}/{name}", (d,)) for norm in norms for name in ("gamma", "beta"))


_LINEAR = (
    ("self_attention/linear_0", 3, 1),
    ("self_attention/linear_1", 1, 1),
    ("attention/linear_0", 1, 1),
    ("attention/linear_1", 2, 1),
    ("attention/linear_2", 1, 1),
    ("ffn/linear_0", 4, 1),
    ("ffn/linear_1", 1, 4),
)
"""Linear layers of a Whisper layer: name, rows and columns of the weight in widths of the model."""


def _from_ctranslate2(path: Path, tensors: Mapping[str, Array]) -> Checkpoint:
    for name, array in tensors.items():
        if array.dtype in _QUANTISED and name.endswith("weight"):
            raise ModelError(
                f"{path}: already quantised to {array.dtype}", "use the float16 or float32 CTranslate2 model"
            )
    heads = tensors.get("decoder/num_heads")
    if heads is None or heads.size != 1 or heads.dtype.kind != "i":
        raise ModelError(f"{path}: decoder/num_heads is missing")
    return Checkpoint(tensors, int(heads.item()))


_HF_LAYER = {
    "self_attn_layer_norm": "self_attention/layer_norm",
    "self_attn.out_proj": "self_attention/linear_1",
    "encoder_attn_layer_norm": "attention/layer_norm",
    "encoder_attn.q_proj": "attention/linear_0",
    "encoder_attn.out_proj": "attention/linear_2",
    "fc1": "ffn/linear_0",
    "fc2": "ffn/linear_1",
    "final_layer_norm": "ffn/layer_norm",
}
_HF_TOP = {
    "model.encoder.conv1": "encoder/conv1",
    "model.encoder.conv2": "encoder/conv2",
    "model.encoder.layer_norm": "encoder/layer_norm",
    "model.decoder.layer_norm": "decoder/layer_norm",
}


class _Named(dict[str, Array]):
    """Arrays of a file; a missing one is an error that names both."""

    def __init__(self, path: Path, arrays: Mapping[str, Array]) -> None:
        super().__init__(arrays)
        self.path = path

    def __missing__(self, name: str) -> Array:
        raise ModelError(f"{self.path}: array {name!r} is missing", "is it a Whisper model?")


def _from_huggingface(source: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """Rename Hugging Face arrays to CTranslate2's names; q, k, v projections are joined."""
    embeddings = source["model.decoder.embed_tokens.weight"]
    yield "decoder/embeddings/weight", embeddings
    yield "decoder/projection/weight", source.get("proj_out.weight", embeddings)  # seldom stored: tied
    for part in ("encoder", "decoder"):
        yield f"{part}/position_encodings/encodings", source[f"model.{part}.embed_positions.weight"]
    for theirs, ours in _HF_TOP.items():
        yield from _weight_and_bias(source, theirs, ours)
    for part in ("encoder", "decoder"):
        for index in range(_MAX_LAYERS):
            prefix = f"model.{part}.layers.{index}"
            if f"{prefix}.fc1.weight" in source:
                yield from _layer(source, prefix, f"{part}/layer_{index}")


def _layer(source: Mapping[str, Array], theirs: str, ours: str) -> Iterator[tuple[str, Array]]:
    yield from _joined(source, f"{theirs}.self_attn", "qkv", f"{ours}/self_attention/linear_0")
    if f"{theirs}.encoder_attn.k_proj.weight" in source:
        yield from _joined(source, f"{theirs}.encoder_attn", "kv", f"{ours}/attention/linear_1")
    for their_name, our_name in _HF_LAYER.items():
        if f"{theirs}.{their_name}.weight" in source:
            yield from _weight_and_bias(source, f"{theirs}.{their_name}", f"{ours}/{our_name}")


def _weight_and_bias(source: Mapping[str, Array], theirs: str, ours: str) -> Iterator[tuple[str, Array]]:
    names = ("gamma", "beta") if "layer_norm" in ours else ("weight", "bias")
    yield f"{ours}/{names[0]}", source[f"{theirs}.weight"]
    yield f"{ours}/{names[1]}", source[f"{theirs}.bias"]


def _joined(source: Mapping[str, Array], theirs: str, parts: str, ours: str) -> Iterator[tuple[str, Array]]:
    weights = [source[f"{theirs}.{part}_proj.weight"] for part in parts]
    if any(weight.ndim != 2 or weight.shape != weights[0].shape for weight in weights):
        raise ModelError(f"the checkpoint's {theirs!r} has projections of shapes that do not fit")
    zeros = np.zeros(len(weights[0]), weights[0].dtype)  # Whisper's k_proj has no bias
    biases = [source.get(f"{theirs}.{part}_proj.bias", zeros) for part in parts]
    yield f"{ours}/weight", np.concatenate(weights)
    yield f"{ours}/bias", np.concatenate([bias.reshape(-1) for bias in biases])
