"""Whisper as a drafter: its own greedy text, one token at a time, as fast as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from as2d_cli.decoding.protocols import END, DrafterSpec, DraftToken
from as2d_cli.types import Features, Request
from as2d_whisper.model import Cache, WhisperModel
from as2d_whisper.prompt import languages, open_prompt
from as2d_whisper.rules import Rules
from as2d_whisper.tokenizer import WhisperTokenizer


class WhisperDrafter:
    """A loaded Whisper that drafts. A draft may be wrong, so rows need not be exact."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Load the converted model in `folder`. Raises `ModelError`."""
        self._model = WhisperModel(folder, threads, exact_rows=False)
        self._rules = Rules(self._model)
        self.spec = DrafterSpec(features=self._model.features, languages=languages(self._model))

    @property
    def tokenizer(self) -> WhisperTokenizer:
        """The model's tokenizer."""
        return self._model.tokenizer

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the model's own text of one window, then `END` if it ended within its context."""
        model = self._model
        audio = model.encode(features)
        cache = Cache(model.facts.n_text_positions, model.cache_width)
        prompt = open_prompt(model, audio, cache, request)
        token = prompt.ids[-1]
        while cache.length < model.facts.n_text_positions:
            first = cache.length == len(prompt.ids) - 1
            rows = model.decode(audio, cache, [token])
            token = int(self._rules.choose(rows.logits, 0 if first else None)[0])
            if token == model.tokenizer.end_id:
                yield DraftToken(END)
                return
            yield DraftToken(token)
