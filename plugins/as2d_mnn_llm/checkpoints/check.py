"""Tells by names and settings whether an export or a checkpoint can be used, before gigabytes are fetched."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from as2d_cli.plugin import ModelError, read_model_json
from as2d_mnn_llm.audio.model import family_of
from as2d_mnn_llm.checkpoints import qwen3_asr
from as2d_mnn_llm.engine import OLD

EXPORT: Final = "llm_config.json"
"""What an export for MNN's LLM engine has and a checkpoint has not."""
CHECKPOINT: Final = "config.json"
"""What both have."""
_TABLE: Final = "embeddings_bf16.bin"
_TOKENIZERS: Final = ({"tokenizer.json"}, {"vocab.json", "merges.txt"}, {"tokenizer.txt"})
"""Sets of files from which a tokenizer can be read, see `hub_tokenizer`."""


def check(folder: Path, names: Collection[str]) -> None:
    """Refuse files of these names if they cannot become a model; their settings lie in `folder`.

    Raises `ModelError`.
    """
    if EXPORT in names:
        _check_export(folder, names)
    else:
        _check_checkpoint(folder)
    if not any(needed <= set(names) for needed in _TOKENIZERS):
        raise ModelError(
            f"no tokenizer that can be read: {', '.join(sorted(names))}",
            "add tokenizer.json, or vocab.json and merges.txt, of the checkpoint that was exported",
        )


def _check_export(folder: Path, names: Collection[str]) -> None:
    family, settings = family_of(folder), read_model_json(folder / EXPORT)
    # llmexport of MNN 3.0 wrote `prompt_template`, and graphs that give logits of the last row only.
    if "model_type" not in settings and "prompt_template" in settings:
        raise ModelError(f"an export of {family.model_type} made with MNN 3.0 cannot verify drafts", OLD)
    if missing := sorted(set(family.files) - set(names)):
        raise ModelError(
            f"an export of {family.model_type} in a form that is not read here: no {', '.join(missing)}",
            family.instead,
        )
    table = str(read_model_json(folder / CHECKPOINT).get("embedding_file", _TABLE))
    if table not in names:
        raise ModelError(
            f"an export of {family.model_type} without a table of embeddings of its own: no {table}",
            "export it with one, as `as2d models export` does (llmexport --seperate_embed)",
        )


def _check_checkpoint(folder: Path) -> None:
    settings = read_model_json(folder / CHECKPOINT)
    kind = settings.get("model_type")
    if kind != qwen3_asr.MODEL_TYPE:
        raise ModelError(
            f"a checkpoint of type {kind!r} cannot be converted as it is",
            "run: as2d models export; then name the folder that it wrote as the source",
        )
    if "thinker_config" not in settings and "audio_config" in settings:
        raise ModelError(
            "a Qwen3-ASR checkpoint in the layout of transformers, whose weights have other names",
            "use the one that Qwen published first, whose name does not end in -hf",
        )
