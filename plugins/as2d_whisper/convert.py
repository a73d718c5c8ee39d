"""Turns a Whisper checkpoint into what this plugin loads: graphs, embeddings and facts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from as2d_cli.plugin import ModelError, OptionValue, read_model_json
from as2d_whisper.backends.backend import AlignmentHeads
from as2d_whisper.backends.choice import graph_writer, settle
from as2d_whisper.checkpoint import Checkpoint, read_checkpoint
from as2d_whisper.layout import HEAD_SIZE
from as2d_whisper.shape import alignment_heads, random_checkpoint, write_tokenizer
from as2d_whisper.tokenizer import repair_tokenizer

_MULTILINGUAL_VOCAB = 51865  # openai/whisper `model.py`; Hugging Face's newer files say it outright


def convert(source: Path, destination: Path, options: Mapping[str, OptionValue]) -> None:
    """Write the converted form of the checkpoint in `source` to `destination`. Raises `ModelError`."""
    checkpoint = read_checkpoint(source)
    if checkpoint.d_model != checkpoint.n_heads * HEAD_SIZE:
        raise ModelError(
            f"{source}: heads of {checkpoint.d_model / checkpoint.n_heads:g} values; expected 64"
        )
    config = _config(source)
    repair_tokenizer(source / "tokenizer.json", destination / "tokenizer.json")
    heads = _alignment_heads(source, config, checkpoint)
    _write(checkpoint, _facts(config, checkpoint), heads, destination, options)
    for name in ("config.json", "generation_config.json"):
        if (source / name).is_file():
            shutil.copyfile(source / name, destination / name)


def convert_shape(destination: Path, options: Mapping[str, OptionValue]) -> None:
    """Write a model of random weights, in the dimensions that the options name. Raises `ModelError`."""
    checkpoint = random_checkpoint(options)
    write_tokenizer(destination / "tokenizer.json")
    _write(checkpoint, _facts({}, checkpoint), alignment_heads(checkpoint), destination, options)


def _write(
    checkpoint: Checkpoint,
    facts: Mapping[str, object],
    heads: AlignmentHeads,
    destination: Path,
    options: Mapping[str, OptionValue],
) -> None:
    """Write graphs, embeddings and facts."""
    options = settle(options)
    graph_writer(options)(checkpoint, heads, destination, options)
    np.save(destination / "embeddings.npy", checkpoint["decoder/embeddings/weight"].astype(np.float16))
    np.save(destination / "positions.npy", checkpoint["decoder/position_encodings/encodings"])
    settled = {"backend": options["backend"], "precision": options["precision"]}
    (destination / "facts.json").write_text(json.dumps({**facts, **settled}), encoding="utf-8")


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
