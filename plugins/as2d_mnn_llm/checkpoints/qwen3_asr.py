"""Turns a Qwen3-ASR checkpoint, as the hub has it, into an export, without PyTorch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError, read_model_json
from as2d_mnn_llm.audio.spliced import to_bfloat16
from as2d_mnn_llm.checkpoints.qwen3_asr_graph import build_front, build_layers
from as2d_mnn_llm.export.decoder import to_mnn, write_decoder
from as2d_mnn_llm.export.graph import DecoderShape
from as2d_mnn_llm.export.records import Matrix, QuantisedLinear, quantise
from as2d_mnn_llm.hub_tokenizer import take_tokenizer

MODEL_TYPE = "qwen3_asr"
_HINT = "fetch the model again"
_BLOCK, _HEAD_BITS = 64, 8
_MANY = 1 << 20
_ROWS_AT_ONCE = 4096
_OPTIONS = ("--bizCode", "as2d", "--saveExternalData", "--fp16")
"""Of the converter."""
_NAMES = {
    "embedding": "thinker.model.embed_tokens.weight",
    "head": "thinker.lm_head.weight",
    "final_norm": "thinker.model.norm.weight",
}
_LAYER_NAMES = {
    **{name: f"self_attn.{name}_proj" for name in "qkvo"},
    **{name: f"mlp.{name}_proj" for name in ("gate", "up", "down")},
    **{name: f"self_attn.{name}" for name in ("q_norm", "k_norm")},
    "input_norm": "input_layernorm",
    "post_norm": "post_attention_layernorm",
}


class Checkpoint:
    """The weights of all safetensors files of a folder, read one by one when asked for."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        """Open the files until `stack` closes. Raises `ModelError`."""
        import ml_dtypes  # noqa: F401  # teaches numpy bfloat16
        from safetensors import SafetensorError, safe_open

        self._folder = folder
        self._files: dict[str, Any] = {}
        for path in sorted(folder.glob("*.safetensors")):
            try:
                file = stack.enter_context(safe_open(path, "np"))
            except (OSError, SafetensorError) as error:
                raise ModelError(f"{path}: not a safetensors file: {error}", _HINT) from error
            self._files |= dict.fromkeys(file.keys(), file)

    def __contains__(self, name: str) -> bool:
        """Whether there is a weight of this name."""
        return name in self._files

    def __call__(self, name: str) -> NDArray[np.float32]:
        """Return a weight as float32. Raises `ModelError`."""
        if name not in self._files:
            raise ModelError(f"{self._folder}: the checkpoint has no weight {name}", _HINT)
        from safetensors import SafetensorError

        try:
            weight: NDArray[np.float32] = np.asarray(self._files[name].get_tensor(name), np.float32)
        except (SafetensorError, TypeError, ValueError) as error:
            raise ModelError(f"{self._folder}: weight {name}: {error}", _HINT) from error
        return weight


def convert(source: Path, destination: Path, bits: int) -> None:
    """Write the export of the checkpoint in `source` to `destination`, which exists.

    `bits` is the precision of the decoder's weights, 8 or 4; its head has 8, and the encoder is in float16.
    Prints to the process's standard output; callers run it in a child process. Raises `ModelError`.
    """
    thinker = _thinker(source)
    with ExitStack() as stack:
        weights = Checkpoint(source, stack)
        try:
            shape = _shape(thinker["text_config"])
            _write_encoder(thinker["audio_config"], weights, destination)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"{source / 'config.json'}: unusable: {error!r}") from error
        write_decoder(shape, lambda name: _weight(weights, name, bits), destination)
        _write_table(weights(_NAMES["embedding"]), destination / "embeddings_bf16.bin")
    settings = json.loads((destination / "llm_config.json").read_text(encoding="utf-8"))
    (destination / "llm_config.json").write_text(json.dumps({**settings, "model_type": MODEL_TYPE}))
    take_tokenizer(source, destination)


def _thinker(source: Path) -> Mapping[str, Any]:
    path = source / "config.json"
    config = read_model_json(path, _HINT)
    if config.get("model_type") != MODEL_TYPE:
        raise ModelError(f"{path}: a model of type {config.get('model_type')!r}, expected {MODEL_TYPE!r}")
    thinker = config.get("thinker_config")
    if not isinstance(thinker, dict):
        raise ModelError(f"{path}: thinker_config is missing", _HINT)
    return thinker


def _count(settings: Mapping[str, Any], name: str) -> int:
    """Return a number of things. Raises `KeyError`, or `ValueError` if it is none."""
    value = settings[name]
    if type(value) is not int or not 0 < value < _MANY:
        raise ValueError(f"{name} is {value!r}")
    return value


def _shape(text: Mapping[str, Any]) -> DecoderShape:
    """Positions of a text with sound are plain ones: mrope's three are equal without pictures."""
    return DecoderShape(
        architecture="qwen3",
        layers=_count(text, "num_hidden_layers"),
        hidden=_count(text, "hidden_size"),
        heads=_count(text, "num_attention_heads"),
        kv_heads=_count(text, "num_key_value_heads"),
        head_dim=_count(text, "head_dim"),
        ffn=_count(text, "intermediate_size"),
        vocab=_count(text, "vocab_size"),
        rope_theta=float(text["rope_theta"]),
        norm_eps=float(text["rms_norm_eps"]),
        tied=True,  # as far as the engine goes: the table of embeddings is a file of its own
    )


def _weight(weights: Checkpoint, name: str, bits: int) -> Matrix | NDArray[np.float32]:
    layer, _, part = name.rpartition(".")
    full = f"thinker.model.layers.{layer}.{_LAYER_NAMES[part]}.weight" if layer else _NAMES[name]
    if name == "head" and full not in weights:
        full = _NAMES["embedding"]
    value = weights(full)
    return value if value.ndim == 1 else _pieces(value, _HEAD_BITS if name == "head" else bits)


def _pieces(matrix: NDArray[np.float32], bits: int) -> Iterator[QuantisedLinear]:
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        yield quantise(matrix[start : start + _ROWS_AT_ONCE], bits, _BLOCK)


def _write_table(table: NDArray[np.float32], path: Path) -> None:
    with path.open("wb") as file:
        for start in range(0, len(table), _ROWS_AT_ONCE):
            file.write(to_bfloat16(table[start : start + _ROWS_AT_ONCE]).tobytes())


def _write_encoder(audio: Mapping[str, Any], weights: Checkpoint, folder: Path) -> None:
    def weight(name: str) -> NDArray[np.float32]:
        return weights(f"thinker.audio_tower.{name}")

    layers, heads = _count(audio, "encoder_layers"), _count(audio, "encoder_attention_heads")
    width = _count(audio, "d_model")
    if width % heads:
        raise ValueError(f"{heads} heads of a width of {width}")
    with TemporaryDirectory(dir=folder) as scratch:
        path = Path(scratch) / "graph.onnx"
        build_front(weight, _count(audio, "num_mel_bins"), path)
        to_mnn("ONNX", path, folder / "audio_front.mnn", *_OPTIONS)
        build_layers(weight, layers, heads, path)
        to_mnn("ONNX", path, folder / "audio.mnn", *_OPTIONS)
    np.save(folder / "audio_width.npy", np.int32(width))
