"""Turns a Whisper checkpoint into what this plugin loads: two MNN graphs, the embeddings, the facts.

The native converter is entered directly. MNN's `mnnconvert` script is never used: it installs and
runs a telemetry package (docs/decisions/0002-converter.md).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from as2d_cli.plugin import ModelError, import_native, read_model_json
from as2d_whisper.checkpoint import Checkpoint, read_checkpoint
from as2d_whisper.graph import build_decoder, build_encoder
from as2d_whisper.layout import HEAD_SIZE
from as2d_whisper.tokenizer import repair_tokenizer

QUANT_BLOCK = 64
_WEIGHT_BITS = (2, 4, 8, 16, 32)
_MULTILINGUAL_VOCAB = 51865  # openai/whisper `model.py`; Hugging Face's newer files say it outright


def onnx_to_mnn(
    onnx_path: Path, mnn_path: Path, *, weight_bits: int = 32, extra_args: Sequence[str] = ()
) -> None:
    """Convert one ONNX file with `weight_bits` per weight. Raises `ModelError`.

    Prints to the process's stdout; callers run it in a child process.
    """
    if weight_bits not in _WEIGHT_BITS:
        raise ModelError(f"{weight_bits} weight bits asked for", f"use one of {_WEIGHT_BITS}")
    arguments = ["mnnconvert", "-f", "ONNX", "--modelFile", str(onnx_path), "--MNNModel", str(mnn_path)]
    arguments += ["--bizCode", "as2d", "--saveExternalData", *extra_args]
    if weight_bits == 16:
        arguments.append("--fp16")
    elif weight_bits < 16:
        arguments += ["--weightQuantBits", str(weight_bits), "--weightQuantBlock", str(QUANT_BLOCK)]
    import_native("_tools").mnnconvert(arguments)  # the wheel's native converter
    if not mnn_path.is_file() or mnn_path.stat().st_size == 0:
        raise ModelError(f"MNN could not convert {onnx_path.name}")


def convert(source: Path, destination: Path, options: Mapping[str, object]) -> None:
    """Write the converted form of the checkpoint in `source` to `destination`. Raises `ModelError`."""
    checkpoint = read_checkpoint(source)
    if checkpoint.d_model != checkpoint.n_heads * HEAD_SIZE:
        raise ModelError(
            f"{source}: heads of {checkpoint.d_model / checkpoint.n_heads:g} values; expected 64"
        )
    config = _config(source)
    facts, heads = _facts(config, checkpoint), _alignment_heads(source, config, checkpoint)
    repair_tokenizer(source / "tokenizer.json", destination / "tokenizer.json")
    with TemporaryDirectory(dir=destination) as scratch:
        onnx_path = Path(scratch) / "graph.onnx"
        build_encoder(checkpoint, onnx_path)
        onnx_to_mnn(onnx_path, destination / "encoder.mnn", weight_bits=_bits(options, "encoder_bits", 32))
        build_decoder(checkpoint, heads, onnx_path)
        onnx_to_mnn(onnx_path, destination / "decoder.mnn", weight_bits=_bits(options, "decoder_bits", 8))
    np.save(destination / "embeddings.npy", checkpoint["decoder/embeddings/weight"].astype(np.float16))
    np.save(destination / "positions.npy", checkpoint["decoder/position_encodings/encodings"])
    (destination / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    for name in ("config.json", "generation_config.json"):
        if (source / name).is_file():
            shutil.copyfile(source / name, destination / name)


def _bits(options: Mapping[str, object], name: str, default: int) -> int:
    value = options.get(name, default)
    if type(value) is not int or value not in _WEIGHT_BITS:
        raise ModelError(f"option {name} is {value!r}; expected one of {_WEIGHT_BITS}")
    return value


def _config(source: Path) -> dict[str, object]:
    config = read_model_json(source / "config.json")
    generation = source / "generation_config.json"
    if generation.is_file():  # Hugging Face keeps the decoding rules apart from the dimensions
        config |= read_model_json(generation)
    return config


def _facts(config: Mapping[str, object], checkpoint: Checkpoint) -> dict[str, object]:
    suppress = _token_ids(config, "suppress_ids", "suppress_tokens")
    begin = _token_ids(config, "suppress_ids_begin", "begin_suppress_tokens")
    return {
        "d_model": checkpoint.d_model,
        "n_mels": checkpoint.n_mels,
        "n_audio_positions": checkpoint.n_audio_positions,
        "n_text_positions": checkpoint.n_text_positions,
        "n_decoder_layers": checkpoint.n_layers("decoder"),
        "vocab_size": checkpoint.vocab_size,
        "suppress": suppress,
        "suppress_begin": begin,
        "is_multilingual": bool(config.get("is_multilingual", checkpoint.vocab_size >= _MULTILINGUAL_VOCAB)),
    }


def _token_ids(config: Mapping[str, object], name: str, other: str) -> list[int]:
    """Return a list of ids that CTranslate2 and Hugging Face call differently. Raises `ModelError`."""
    ids = config.get(name, config.get(other)) or []
    if not isinstance(ids, list) or not all(type(one) is int for one in ids):
        raise ModelError(f"config.json: {name if name in config else other} is not a list of tokens")
    return ids


def _alignment_heads(
    source: Path, config: Mapping[str, object], checkpoint: Checkpoint
) -> list[tuple[int, int]]:
    """Return (layer, head) of the decoder heads that follow the speech.

    Without a list, and with a list of heads that the model does not have (distilled models carry
    their teacher's), these are all heads of the upper half of the layers, as in openai/whisper
    `model.py`.
    """
    n_layers = checkpoint.n_layers("decoder")
    try:
        listed = [(int(layer), int(head)) for layer, head in config.get("alignment_heads") or []]  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{source}: alignment_heads is not a list of (layer, head)") from None
    if listed and all(0 <= layer < n_layers and 0 <= head < checkpoint.n_heads for layer, head in listed):
        return listed
    return [(layer, head) for layer in range(n_layers // 2, n_layers) for head in range(checkpoint.n_heads)]
