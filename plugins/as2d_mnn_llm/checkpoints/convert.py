"""Where models come from: exports for MNN's LLM engine, and checkpoints as the hub has them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from as2d_cli.plugin import ModelError, read_model_json
from as2d_mnn_llm.audio.model import family_of
from as2d_mnn_llm.checkpoints import qwen3_asr
from as2d_mnn_llm.hub_tokenizer import take_tokenizer

_DECODER_BITS = 8
_QUANTISED = (4, 8)
_PRECISIONS = (4, 8, 16)


def is_one(folder: Path) -> bool:
    """Tell whether there is an export or a checkpoint in `folder`."""
    return (folder / "config.json").is_file()


def convert(options: Mapping[str, object], source: Path, destination: Path) -> None:
    """Bring the export or the checkpoint in `source` to `destination`, which exists. Raises `ModelError`."""
    if (source / "llm_config.json").is_file():
        family_of(source)
        _take(source, destination)
        take_tokenizer(source, destination)
        return
    kind = _model_type(source)
    if kind != qwen3_asr.MODEL_TYPE:
        raise ModelError(
            f"{source}: a checkpoint of type {kind!r} cannot be converted as it is",
            "run: as2d models export; then name the folder that it wrote as the source",
        )
    qwen3_asr.convert(source, destination, _bits(options.get("decoder_bits", _DECODER_BITS)))


def export(source: Path, destination: Path, bits: int) -> None:
    """Export the checkpoint in `source` to `destination`, which must not exist. Raises `ModelError`."""
    if bits not in _PRECISIONS:
        raise ModelError(f"{bits} bits asked for", f"use one of {_PRECISIONS}")
    if destination.exists():
        raise ModelError(f"{destination} exists already", "name a new folder")
    destination.parent.mkdir(parents=True, exist_ok=True)
    if _model_type(source) != qwen3_asr.MODEL_TYPE:
        from as2d_mnn_llm.checkpoints import torch_export

        torch_export.export(source, destination, bits)
        return
    destination.mkdir()
    try:
        qwen3_asr.convert(source, destination, _bits(bits))
    except BaseException:
        shutil.rmtree(destination)
        raise


def _bits(value: object) -> int:
    if type(value) is not int or value not in _QUANTISED:
        raise ModelError(f"option decoder_bits is {value!r}; expected one of {_QUANTISED}")
    return value


def _model_type(folder: Path) -> str:
    return str(read_model_json(folder / "config.json").get("model_type"))


def _take(source: Path, destination: Path) -> None:
    for file in sorted(source.rglob("*")):
        if file.is_file() and file.name != "tokenizer.json":
            place = destination / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file.resolve(), place)  # gigabytes need not be there twice
            except OSError:
                shutil.copyfile(file, place)
