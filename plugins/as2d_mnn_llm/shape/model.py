"""A shape as target and drafter: it decides nonsense in the time that the real model would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from as2d_cli.plugin import DrafterSpec, DraftToken, Features, FeatureSpec, Request, TargetSpec
from as2d_mnn_llm.audio.encoder import MEMORY_HIGH, AudioGraph
from as2d_mnn_llm.engine import Engine
from as2d_mnn_llm.exactness import safe_rows
from as2d_mnn_llm.session import LlmDraftSession, LlmSession
from as2d_mnn_llm.shape.files import ModelShape, stored_shape

_LANGUAGES = ("en",)
_MAX_TOKENS = 448


class ShapeTokenizer:
    """Stands in for a tokenizer: random weights have no text."""

    fingerprint = "shape"

    def encode(self, text: str) -> list[int]:
        """Return nothing."""
        return []

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return nothing."""
        return b""


class _Model:
    """Both parts, with the head of the prompt in the cache: opening a window then does its share."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.shape: ModelShape = stored_shape(folder)
        self.engine = Engine(folder, threads)
        # float32, as the encoders that llmexport makes compute in; int8 is no faster at these sizes
        self._encoder = AudioGraph(folder / "audio.mnn", threads, ["frames"], "audio", MEMORY_HIGH)
        self.features = FeatureSpec(self.shape.encoder.n_mels, self.shape.frames)
        self.prompt = [token % self.shape.decoder.vocab for token in range(self.shape.prompt_tokens)]
        self.kept = self.shape.prompt_tokens - self.shape.opened_tokens

    def fill(self) -> None:
        """Put the head of the prompt into the cache."""
        self.engine.reset()
        if self.kept:
            self.engine.prefill(self.prompt[: self.kept])

    def encode(self, features: Features) -> None:
        """Do the encoder's work for `features`, shape (n_mels, frames)."""
        n_mels = self.shape.encoder.n_mels
        if self.shape.encoder.front_end == "conv2d":
            self._encoder.run(features.reshape(n_mels, -1, 100).swapaxes(0, 1)[:, None])
        else:
            self._encoder.run(features.T.reshape(-1, 2 * n_mels))


class ShapeTarget:
    """A shape that verifies drafts."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Load the converted model in `folder`. Raises `ModelError`."""
        self._safe = safe_rows(partial(Engine, folder, threads), folder, f"{threads} threads")
        self._model = model = _Model(folder, threads)
        model.fill()
        self.tokenizer = ShapeTokenizer()
        vocab = model.shape.decoder.vocab
        self.spec = TargetSpec(
            model.features, end_id=vocab - 1, vocab_size=vocab, languages=_LANGUAGES, splits_threads=False
        )

    def open(self, features: Features, request: Request) -> LlmSession:
        """Do the work of opening a window, for the part of 30 s that `features` are."""
        model = self._model
        model.encode(features)
        return LlmSession(model.engine, model.prompt, _MAX_TOKENS, self._safe, kept=model.kept)


class ShapeDrafter:
    """A shape that drafts."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Load the converted model in `folder`. Raises `ModelError`."""
        self._model = _Model(folder, threads)
        self._model.fill()
        self.tokenizer = ShapeTokenizer()
        self.spec = DrafterSpec(self._model.features, _LANGUAGES)

    def open(self, features: Features, request: Request) -> LlmDraftSession:
        """Do the work of opening a window, for the part of 30 s that `features` are."""
        model = self._model
        model.encode(features)
        return LlmDraftSession(model.engine, model.prompt, _MAX_TOKENS, kept=model.kept)

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield as many tokens as a window may have."""
        yield from self.open(features, request).written()
