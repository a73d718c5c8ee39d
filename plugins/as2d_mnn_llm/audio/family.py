"""What differs between families of audio language models: how sound is encoded and how a task is put.

A prompt is written as parts: text, special tokens, and the place of the sound. Only what is marked as
special becomes a special token, so a question cannot smuggle one in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from as2d_cli.plugin import LANGUAGES, FeatureSpec, Request, Task
from as2d_mnn_llm.audio.encoder import Encode
from as2d_mnn_llm.bpe import LlmTokenizer


class Special(str):
    """The name of a special token."""

    __slots__ = ()


SOUND: Final = Special("")
"""Stands in a prompt where the embeddings of the sound belong."""

Prompt: TypeAlias = tuple[str, ...]
"""Text, `Special` and `SOUND`."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family of models."""

    model_type: str
    features: FeatureSpec
    """How it hears."""
    load_encoder: Callable[[Path, int], Encode]
    """Loads the audio encoder of an export, to run on so many threads. Raises `ModelError`."""
    prompt: Callable[[Request], Prompt]
    languages: tuple[str, ...]
    tasks: tuple[Task, ...] = ("transcribe", "translate", "ask")
    files: tuple[str, ...] = ("audio.mnn",)
    """What an export must have for its audio encoder."""
    instead: str = "export the model with its audio encoder"
    """What to do where a file is missing."""
    mrope: bool = False
    """Whether its graph takes three rows of positions; exports say so only since MNN 3.5."""
    max_prompt_tokens: int = 0
    """Tokens of what was said before that the model can be given."""
    marker: str | None = None
    """Special token that ends what a model says of the language before its text, if it says it."""
    language_of: Mapping[str, str] = field(default_factory=dict)
    """Language codes by what the model says before the marker."""


def chat(system: str, *user: str) -> Prompt:
    """Return the parts of a ChatML conversation in which the model is to answer `user`."""
    begin, end = Special("<|im_start|>"), Special("<|im_end|>")
    return (begin, f"system\n{system}", end, "\n", begin, "user\n", *user, end, "\n", begin, "assistant\n")


def instruction(request: Request) -> str:
    """Return what a model that follows instructions is told to do with the sound."""
    if request.task == "ask":
        return f"{request.question or ''} If the recording does not tell, answer: Not in the recording."
    speech = f"{_name(request.language)} speech" if request.language else "speech"
    if request.task == "translate":
        to = _name(request.to)
        return f"Translate the {speech} into {to}. Answer with the translation and nothing else."
    return f"Transcribe the {speech}. Answer with the words that are spoken and nothing else."


def _name(language: str) -> str:
    return LANGUAGES[language].title()


def prompt_ids(tokenizer: LlmTokenizer, prompt: Prompt, sound: Iterable[int]) -> list[int]:
    """Return the ids of a prompt, those of the sound in their place.

    Raises `ModelError` for a special token that the tokenizer does not have.
    """
    ids: list[int] = []
    text = ""
    for part in (*prompt, None):
        if isinstance(part, str) and not isinstance(part, Special):
            text += part  # pieces that meet are one text to the tokenizer
            continue
        ids += tokenizer.encode(text) if text else []
        text = ""
        if part is not None:
            ids += sound if part is SOUND else [tokenizer.special(part)]
    return ids
