"""Whisper as a drafter: its own greedy text, one token at a time, as fast as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from as2d_cli.plugin import END, DrafterSpec, DraftToken, Features, ModelError, Request
from as2d_whisper.backends.backend import Rows
from as2d_whisper.context import fit
from as2d_whisper.model import WhisperModel
from as2d_whisper.options import Context
from as2d_whisper.prompt import languages, open_prompt, tasks
from as2d_whisper.rules import Rules
from as2d_whisper.tokenizer import WhisperTokenizer

MAX_SPEED = 2.0
"""Nothing is understood beyond."""


class WhisperDrafter:
    """A loaded Whisper that drafts. A draft may be wrong, so rows need not be exact."""

    def __init__(
        self, folder: Path, threads: int, speed: float = 1.0, *, context: Context = "fitted"
    ) -> None:
        """Load the converted model in `folder`; it hears audio `speed` times as fast. Raises `ModelError`."""
        if not 1 <= speed <= MAX_SPEED:
            raise ModelError(f"option speed is {speed:g}", f"give a number from 1 to {MAX_SPEED}")
        self._speed = speed
        self._context: Context = context
        self._model = WhisperModel(folder, threads, exact_rows=False)
        self._rules = Rules(self._model)
        self.spec = DrafterSpec(self._model.features, languages(self._model), tasks(self._model))

    @property
    def tokenizer(self) -> WhisperTokenizer:
        """The model's tokenizer."""
        return self._model.tokenizer

    def open(self, features: Features, request: Request) -> WhisperDraftSession:
        """Encode a window of shape `spec.features.shape` and prefill the prompt. Raises `ModelError`."""
        heard = fit(sped_up(features, self._speed), self._context, self._model.facts.d_model)
        return WhisperDraftSession(self._model, self._rules, heard, request)

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the model's own text of one window, then `END` if it ended within its context."""
        session = self.open(features, request)
        token = session.prompt[-1]
        for _ in range(session.max_tokens):
            token = session.choose([token])
            if token == self.tokenizer.end_id:
                yield DraftToken(END)
                return
            yield DraftToken(token)


def sped_up(features: Features, speed: float) -> Features:
    """Return log-mel features of the same shape in which everything happens `speed` times as fast."""
    if speed == 1:
        return features
    n_frames = features.shape[1]
    places = np.arange(0, n_frames - 1, speed)
    left = places.astype(np.intp)
    share = (places - left).astype(np.float32)
    faster = np.zeros_like(features)
    faster[:, : len(places)] = features[:, left] * (1 - share) + features[:, left + 1] * share
    return faster


class WhisperDraftSession:
    """One window: encoder output, key/value cache, prompt."""

    def __init__(self, model: WhisperModel, rules: Rules, features: Features, request: Request) -> None:
        """Encode, detect the language if the request leaves it open, and prefill."""
        self._model = model
        self._rules = rules
        self._audio = model.encode(features)
        self._cache = model.new_cache()
        self.prompt = open_prompt(model, self._audio, self._cache, request).ids
        self.max_tokens = model.facts.n_text_positions - len(self.prompt) + 1

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._cache.length

    def choose(self, tokens: Sequence[int]) -> int:
        """Append `tokens` and return the greedy next id. Raises `ModelError` if they do not fit."""
        return self._choose(tokens)[0]

    def forward(self, tokens: Sequence[int]) -> DraftToken:
        """Append `tokens`; return the greedy next token with its probability among the allowed ones."""
        token, rows = self._choose(tokens)
        end = self._model.tokenizer.end_id
        scores = rows.logits[-1, : self._rules.allowed]
        probability = 1 / float(np.exp(scores - scores.max()).sum())
        return DraftToken(END if token == end else token, probability)

    def rollback(self, length: int) -> None:
        """Keep the first `length` tokens. Raises `ModelError` for a length that is not cached."""
        self._cache.truncate(length)

    def _choose(self, tokens: Sequence[int]) -> tuple[int, Rows]:
        """Return the greedy next id, and the rows whose last logits now have suppressed ids at -inf."""
        rows = self._model.decode(self._audio, self._cache, tokens)
        first = self._cache.length == len(self.prompt)
        return int(self._rules.choose(rows.logits[-1:], 0 if first else None)[0]), rows
