"""A loaded audio language model: encoder, engine, tokenizer and its family's ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from as2d_cli.plugin import END, Features, ModelError, Request, RequestError, read_model_json
from as2d_mnn_llm.audio import qwen2_5_omni, qwen2_audio, qwen3_asr
from as2d_mnn_llm.audio.family import Family, prompt_ids
from as2d_mnn_llm.audio.spliced import SplicedEngine
from as2d_mnn_llm.engine import Memory
from as2d_mnn_llm.hub_tokenizer import load_hub_tokenizer

MAX_TOKENS = 448
"""Most tokens of an answer about 30 s of speech, as Whisper's: twice what the fastest speaker fills."""
_FAMILIES: Mapping[str, Family] = {
    one.FAMILY.model_type: one.FAMILY for one in (qwen2_audio, qwen2_5_omni, qwen3_asr)
}
_ENDS = ("<|im_end|>", "<|endoftext|>")
_MARKER_WITHIN = 12
"""Tokens within which a model that tells the language has told it."""


class AudioModel:
    """Everything of a model that does not belong to a window."""

    def __init__(self, folder: Path, threads: int, memory: Memory) -> None:
        """Load the export in `folder`. Raises `ModelError` if it lacks a part or is of no known family."""
        self.family = family_of(folder)
        self.tokenizer = load_hub_tokenizer(folder)
        self.ends = [self.tokenizer.special(name) for name in _ENDS]
        self._encode = self.family.load_encoder(folder, threads)
        self.engine = SplicedEngine(folder, threads, memory, mrope=self.family.mrope)

    def prompt(self, features: Features, request: Request) -> list[int]:
        """Encode a window of shape `family.features.shape`; return the prompt, valid until the next call.

        Raises `RequestError` for what the family cannot do, `ModelError` if the encoder fails.
        """
        if features.shape != self.family.features.shape:
            raise ModelError(f"features of shape {features.shape}, expected {self.family.features.shape}")
        if request.task not in self.family.tasks:
            raise RequestError(
                f"{self.family.model_type} models cannot {request.task}", "choose another model"
            )
        if request.language is not None and request.language not in self.family.languages:
            raise RequestError(f"the model does not know the language {request.language!r}")
        sound = self.engine.hear(self._encode(features))
        return prompt_ids(self.tokenizer, self.family.prompt(request), sound)

    def tell_language(self, begin: int, choose: Callable[[int], int]) -> tuple[list[int], str | None]:
        """Return what the model says before its text, marker included, and the code of the language it means.

        `begin` is the last token of the prompt, `choose` appends a token and returns the next one. Nothing
        is returned of a model that does not set its text off; what it said has to be rolled back.
        """
        if self.family.marker is None:
            return [], None
        marker, said = self.tokenizer.special(self.family.marker), [choose(begin)]
        while said[-1] != marker:
            if len(said) == _MARKER_WITHIN or said[-1] in (*self.ends, END):
                return [], None
            said.append(choose(said[-1]))
        text = self.tokenizer.decode_bytes(said).decode("utf-8", "replace").strip()
        return said, self.family.language_of.get(text)


def hears(folder: Path) -> bool:
    """Tell whether a converted model is of one of the families. Raises `ModelError` if it is broken."""
    return _kind(folder) in _FAMILIES


def family_of(folder: Path) -> Family:
    """Return the family of an export. Raises `ModelError` if it has none that is known."""
    kind = _kind(folder)
    if kind not in _FAMILIES:
        raise ModelError(f"{folder}: a model of type {kind!r} is not known", f"known: {', '.join(_FAMILIES)}")
    return _FAMILIES[kind]


def _kind(folder: Path) -> str:
    """Return the type of model of an export.

    llmexport names it since MNN 3.3.1. Before that it knew two families that hear, and only one of them has
    windows.
    """
    settings = read_model_json(folder / "llm_config.json", "export or fetch the model anew")
    if "model_type" not in settings and settings.get("is_audio") is True:
        family: Family = (qwen2_5_omni if "n_window" in settings else qwen2_audio).FAMILY
        return family.model_type
    return str(settings.get("model_type"))
