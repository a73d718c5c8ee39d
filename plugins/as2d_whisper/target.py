"""Whisper as a target: greedy text of one window, exact for any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features, ModelError, Request, TargetSpec, TokenIds, Word
from as2d_whisper.backends.backend import Rows
from as2d_whisper.context import fit
from as2d_whisper.model import WhisperModel
from as2d_whisper.options import Context
from as2d_whisper.prompt import languages, max_prompt_tokens, open_prompt, tasks
from as2d_whisper.rules import Rules
from as2d_whisper.tokenizer import WhisperTokenizer
from as2d_whisper.words import levels, words_of

TRANSLATION_TOKENS = 224
"""Most tokens of a window's translation: half the context, as in OpenAI's `DecodingOptions.sample_len`.
English speech of 30 s has about 100; what goes on beyond repeats itself. Transcripts may use the whole
context, as languages written in many tokens need it."""


class WhisperTarget:
    """A loaded Whisper that verifies drafts."""

    def __init__(
        self, folder: Path, threads: int, decode_threads: int | None = None, *, context: Context = "full"
    ) -> None:
        """Load the converted model in `folder`. Raises `ModelError`.

        `decode_threads` (None: as many) run the decoder. Its bits do not depend on them, those of the
        encoder on its threads do.
        """
        self._model = WhisperModel(folder, threads, exact_rows=True, decode_threads=decode_threads)
        self._rules = Rules(self._model)
        self._context: Context = context
        self.spec = TargetSpec(
            features=self._model.features,
            end_id=self._model.tokenizer.end_id,
            vocab_size=self._model.facts.vocab_size,
            languages=languages(self._model),
            max_prompt_tokens=max_prompt_tokens(self._model),
            tasks=tasks(self._model),
        )

    @property
    def tokenizer(self) -> WhisperTokenizer:
        """The model's tokenizer."""
        return self._model.tokenizer

    def open(self, features: Features, request: Request) -> WhisperSession:
        """Encode a window of shape `spec.features.shape` and prefill the prompt. Raises `ModelError`."""
        heard = fit(features, self._context, self._model.facts.d_model)
        return WhisperSession(self._model, self._rules, heard, request)


class WhisperSession:
    """One window: encoder output, key/value cache, prompt."""

    def __init__(self, model: WhisperModel, rules: Rules, features: Features, request: Request) -> None:
        """Encode, detect the language if the request leaves it open, and prefill."""
        self._model = model
        self._rules = rules
        self._audio = model.encode(features)
        self._cache = model.new_cache()
        self._attention: list[NDArray[np.float32]] = []
        self._level = levels(features) if request.word_times else None
        prompt = open_prompt(model, self._audio, self._cache, request)
        self.prompt = prompt.ids
        self.language = prompt.language
        self._written = "en" if request.task == "translate" else prompt.language
        room = model.facts.n_text_positions - len(prompt.ids)
        self.max_tokens = min(room, TRANSLATION_TOKENS) if request.task == "translate" else room

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._cache.length

    def forward(self, tokens: Sequence[int]) -> TokenIds:
        """Append `tokens` and return the greedy next token after each, shape (len(tokens),)."""
        first = len(self.prompt) - 1 - self._cache.length
        rows = self._decode(tokens)
        return self._rules.choose(rows.logits, first if 0 <= first < len(tokens) else None)

    def scores(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Append `tokens` and return the logits after each, shape (len(tokens), vocab)."""
        return np.array(self._decode(tokens).logits)

    def _decode(self, tokens: Sequence[int]) -> Rows:
        rows = self._model.decode(self._audio, self._cache, tokens)
        if self._level is not None:
            self._attention += list(rows.alignment.copy())
        return rows

    def rollback(self, length: int) -> None:
        """Keep the first `length` tokens. Raises `ModelError` for a length that is not cached."""
        self._cache.truncate(length)
        del self._attention[max(0, length - len(self.prompt) + 1) :]

    def words(self, tokens: Sequence[int], duration_s: float) -> tuple[Word, ...]:
        """Return the words of committed text `tokens` with their times, seconds within the window.

        Raises `ModelError` unless the request asked for word times.
        """
        if self._level is None:
            raise ModelError("this window was opened without word times")
        if not tokens:
            return ()
        attention = np.array(self._attention[: len(tokens) + 1])
        return words_of(
            self._model.tokenizer,
            tokens,
            attention,
            self._level,
            language=self._written,
            duration_s=duration_s,
        )
