"""Where models come from: exports for MNN's LLM engine, and checkpoints as the hub has them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from as2d_cli.plugin import ModelError, read_model_json
from as2d_mnn_llm.audio.model import family_of
from as2d_mnn_llm.audio.spliced import SplicedEngine
from as2d_mnn_llm.checkpoints import qwen3_asr
from as2d_mnn_llm.checkpoints.check import EXPORT, check
from as2d_mnn_llm.exactness import try_apart
from as2d_mnn_llm.hub_tokenizer import take_tokenizer

_DECODER_BITS = 8
_QUANTISED = (4, 8)
_PRECISIONS = (4, 8, 16)


def convert(options: Mapping[str, object], source: Path, destination: Path) -> None:
    """Bring the export or the checkpoint in `source` to `destination`, which exists. Raises `ModelError`."""
    files = {path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.is_file()}
    check(source, files)
    if EXPORT in files:
        _take(files, destination)
        take_tokenizer(source, destination)
        # MNN may crash on it, or find no two numbers of rows that agree: better now than in a run.
        try_apart(partial(SplicedEngine, destination, 1, mrope=family_of(destination).mrope), destination)
        return
    qwen3_asr.convert(source, destination, _bits(options.get("decoder_bits", _DECODER_BITS)))


def export(source: Path, destination: Path, bits: int, *, hqq: bool = False) -> None:
    """Export the checkpoint in `source` to `destination`, which must not exist. Raises `ModelError`."""
    if bits not in _PRECISIONS:
        raise ModelError(f"{bits} bits asked for", f"use one of {_PRECISIONS}")
    if destination.exists():
        raise ModelError(f"{destination} exists already", "name a new folder")
    destination.parent.mkdir(parents=True, exist_ok=True)
    if _model_type(source) != qwen3_asr.MODEL_TYPE:
        from as2d_mnn_llm.checkpoints import torch_export

        torch_export.export(source, destination, bits, hqq=hqq)
        return
    if hqq:
        raise ModelError("Qwen3-ASR's checkpoints are not exported with --hqq", "leave it out, with 8 bits")
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


def _take(files: Mapping[str, Path], destination: Path) -> None:
    for name, file in files.items():
        if file.name != "tokenizer.json":
            place = destination / name
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file.resolve(), place)  # gigabytes need not be there twice
            except OSError:
                shutil.copyfile(file, place)
