"""What a Whisper is told before it writes: the text before, task, language, no timestamps.

As openai/whisper does it (`tokenizer.py`; the text before: `DecodingTask._get_initial_tokens`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from as2d_cli.plugin import ModelError, Request, Task
from as2d_whisper.backends.backend import Audio, Cache
from as2d_whisper.model import WhisperModel

_TEXT_BEFORE = "<|startofprev|>"


@dataclass(frozen=True)
class Prompt:
    """Prompt ids and the language they ask for."""

    ids: tuple[int, ...]
    language: str


def tasks(model: WhisperModel) -> tuple[Task, ...]:
    """Return what a model can be asked to do."""
    return ("transcribe", "translate") if model.facts.is_multilingual else ("transcribe",)


def languages(model: WhisperModel) -> tuple[str, ...]:
    """Return the language codes a model can write."""
    return tuple(model.tokenizer.languages) if model.facts.is_multilingual else ("en",)


def max_prompt_tokens(model: WhisperModel) -> int:
    """Return how many tokens the text before may have: just under half of the context, as in training."""
    return model.facts.n_text_positions // 2 - 1 if model.tokenizer.has_special(_TEXT_BEFORE) else 0


def open_prompt(model: WhisperModel, audio: Audio, cache: Cache, request: Request) -> Prompt:
    """Choose the prompt, detecting the language if need be, and cache all of it but the last token.

    Raises `ModelError` for a language or task the model does not have.
    """
    prompt = _choose(model, audio, cache, request)
    if before := _text_before(model, request):
        cache.truncate(0)  # detecting the language may have left the start token there
        prompt = Prompt((*before, *prompt.ids), prompt.language)
    model.decode(audio, cache, prompt.ids[cache.length : -1])
    return prompt


def _text_before(model: WhisperModel, request: Request) -> tuple[int, ...]:
    """Return the ids of the request's prompt, the end of one that is too long for this model.

    A target's is never too long, that is checked beforehand; a drafter may know less of its words.
    """
    kept = max_prompt_tokens(model)
    if request.prompt is None or not kept:
        return ()
    ids = model.tokenizer.encode(f" {request.prompt.strip()}")
    return (model.tokenizer.special(_TEXT_BEFORE), *ids[-kept:])


def _choose(model: WhisperModel, audio: Audio, cache: Cache, request: Request) -> Prompt:
    special = model.tokenizer.special
    start, plain = special("<|startoftranscript|>"), special("<|notimestamps|>")
    language = request.language
    if language is not None and language not in languages(model):
        raise ModelError(f"the model does not know the language {language!r}")
    if not model.facts.is_multilingual:
        if request.task not in tasks(model):
            raise ModelError("an English-only model cannot translate", "use a multilingual model")
        return Prompt((start, plain), "en")
    if language is None:
        language = _detect(model, audio, cache, start)
    task = request.in_language(language).task
    return Prompt((start, model.tokenizer.languages[language], special(f"<|{task}|>"), plain), language)


def _detect(model: WhisperModel, audio: Audio, cache: Cache, start: int) -> str:
    """Return the likeliest language token after the start token, as Whisper detects languages."""
    codes = model.tokenizer.languages
    scores = model.decode(audio, cache, [start]).logits[0, list(codes.values())]
    return list(codes)[int(np.argmax(scores))]
