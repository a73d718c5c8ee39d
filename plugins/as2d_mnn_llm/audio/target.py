"""An audio language model as a target."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from as2d_cli.plugin import Features, Request, TargetSpec
from as2d_mnn_llm.audio.model import MAX_TOKENS, AudioModel, family_of
from as2d_mnn_llm.audio.spliced import SplicedEngine
from as2d_mnn_llm.bpe import LlmTokenizer
from as2d_mnn_llm.engine import Memory
from as2d_mnn_llm.exactness import safe_rows
from as2d_mnn_llm.session import LlmSession


class AudioTarget:
    """A loaded model that verifies drafts."""

    def __init__(self, folder: Path, threads: int, memory: Memory = "low") -> None:
        """Load the export in `folder`. Raises `ModelError`."""
        mrope = family_of(folder).mrope
        load = partial(SplicedEngine, folder, threads, memory, mrope=mrope)
        self._safe = safe_rows(load, folder, f"{threads} threads, memory {memory}")
        self._model = AudioModel(folder, threads, memory)
        self.spec = TargetSpec(
            features=self._model.family.features,
            end_id=self._model.ends[0],
            vocab_size=self._model.engine.vocab_size,
            languages=self._model.family.languages,
            tasks=self._model.family.tasks,
            translates_to=self._model.family.languages,
            max_prompt_tokens=self._model.family.max_prompt_tokens,
            splits_threads=False,
        )

    @property
    def tokenizer(self) -> LlmTokenizer:
        """The model's tokenizer."""
        return self._model.tokenizer

    def open(self, features: Features, request: Request) -> AudioSession:
        """Encode a window of shape `spec.features.shape` and prefill the prompt.

        Raises `RequestError` for what the model cannot do, `ModelError` if it fails.
        """
        return AudioSession(self._model, self._model.prompt(features, request), self._safe, request.language)


class AudioSession(LlmSession):
    """One window. What a model says about the language becomes part of the prompt, never of the text."""

    def __init__(
        self, model: AudioModel, prompt: Sequence[int], safe: Sequence[int], language: str | None
    ) -> None:
        super().__init__(model.engine, prompt, MAX_TOKENS, safe, ends=model.ends)
        self.language = language
        if language is None:
            said, self.language = model.tell_language(
                self.prompt[-1], lambda token: int(self.forward([token])[0])
            )
            self.prompt += tuple(said)
            self.rollback(len(self.prompt) - 1)
