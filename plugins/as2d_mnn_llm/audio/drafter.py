"""An audio language model as a drafter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from as2d_cli.plugin import DrafterSpec, DraftToken, Features, Request
from as2d_mnn_llm.audio.model import MAX_TOKENS, AudioModel
from as2d_mnn_llm.bpe import LlmTokenizer
from as2d_mnn_llm.engine import Memory
from as2d_mnn_llm.session import LlmDraftSession


class AudioDrafter:
    """A loaded model that drafts. A draft may be wrong, so rows need not be exact."""

    def __init__(self, folder: Path, threads: int, memory: Memory = "low") -> None:
        """Load the export in `folder`. Raises `ModelError`."""
        self._model = AudioModel(folder, threads, memory)
        family = self._model.family
        self.spec = DrafterSpec(family.features, family.languages, family.tasks, family.languages)

    @property
    def tokenizer(self) -> LlmTokenizer:
        """The model's tokenizer."""
        return self._model.tokenizer

    def open(self, features: Features, request: Request) -> AudioDraftSession:
        """Encode a window of shape `spec.features.shape` and prefill the prompt.

        Raises `RequestError` for what the model cannot do, `ModelError` if it fails.
        """
        return AudioDraftSession(self._model, self._model.prompt(features, request), request.language)

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the model's own text of one window, then `END` if it ended within its limit."""
        yield from self.open(features, request).written()


class AudioDraftSession(LlmDraftSession):
    """One window; what the model says about the language becomes part of the prompt."""

    def __init__(self, model: AudioModel, prompt: Sequence[int], language: str | None) -> None:
        super().__init__(model.engine, prompt, MAX_TOKENS, ends=model.ends)
        if language is None:
            said, _ = model.tell_language(self.prompt[-1], lambda token: self.forward([token]).id)
            self.prompt += tuple(said)
            self.rollback(len(self.prompt) - 1)
