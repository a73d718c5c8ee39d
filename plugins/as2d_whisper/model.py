"""A loaded Whisper: encode a window, run decoder rows over a key/value cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from as2d_cli.plugin import Features, FeatureSpec, ModelError
from as2d_whisper.backends.backend import MAX_ROWS, Audio, Cache, Rows
from as2d_whisper.backends.choice import load_backend
from as2d_whisper.facts import Facts
from as2d_whisper.tokenizer import WhisperTokenizer


class WhisperModel:
    """Backend, embeddings and tokenizer of one converted model."""

    def __init__(
        self, folder: Path, threads: int, *, exact_rows: bool, decode_threads: int | None = None
    ) -> None:
        """Load the converted model in `folder`; the decoder runs on `decode_threads`. Raises `ModelError`.

        With `exact_rows` a row's result has the same bits whatever rows run with it. Drafters do without:
        one row is cheaper then.
        """
        self.facts = Facts.read(folder / "facts.json")
        self.tokenizer = WhisperTokenizer(folder / "tokenizer.json")
        self.features = FeatureSpec(self.facts.n_mels, 2 * self.facts.n_audio_positions)
        # read from disk on demand: a step touches a few rows of a table of tens of megabytes
        self._embeddings = np.load(folder / "embeddings.npy", mmap_mode="r")
        self._positions = np.load(folder / "positions.npy")
        self._backend = load_backend(
            folder,
            self.facts,
            threads=threads,
            decode_threads=decode_threads or threads,
            exact_rows=exact_rows,
        )

    def encode(self, features: Features) -> Audio:
        """Return cross-attention keys and values per layer for `features`, shape (n_mels, even n_frames).

        Raises `ModelError` for other mel bands than `self.features` has, or more frames.
        """
        bands, frames = features.shape
        if bands != self.features.n_mels or frames > self.features.n_frames or frames % 2:
            raise ModelError(f"features of shape {features.shape}, expected {self.features.shape}")
        return self._backend.encode(features)

    def new_cache(self) -> Cache:
        """Return an empty key/value cache with room for the whole context."""
        return self._backend.new_cache()

    def decode(self, audio: Audio, cache: Cache, tokens: Sequence[int]) -> Rows:
        """Run `tokens`, at least one, after the cached ones and append their keys and values to the cache.

        Returns what the last pass gave: that of all tokens, if they are no more than `MAX_ROWS`. Raises
        `ModelError` if the context is too short for them.
        """
        start, stop = cache.length, cache.length + len(tokens)
        if stop > self.facts.n_text_positions:
            raise ModelError(f"{stop} tokens in a context of {self.facts.n_text_positions}")
        embedded = self._embeddings[list(tokens)].astype(np.float32) + self._positions[start:stop]
        *early, last = range(0, len(tokens), MAX_ROWS)
        for first in early:
            self._backend.run(audio, cache, embedded[first : first + MAX_ROWS])
        return self._backend.run(audio, cache, embedded[last:])
