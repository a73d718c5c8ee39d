"""A loaded Whisper: encode a window, run decoder rows over an explicit key/value cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features, FeatureSpec, ModelError, read_json
from as2d_whisper.layout import HEAD_SIZE, KEY_MULTIPLE
from as2d_whisper.mnn import Graph, Var, constant
from as2d_whisper.tokenizer import WhisperTokenizer

_MASKED = np.float32(-1e9)
_OWN_GRAPHS = 8
"""Passes of up to so many rows have a graph each, of 3 MB: laying one out for another number takes 1 ms."""
_CACHE_STEP = 32
"""Cached keys are handed over in multiples of this, so that MNN seldom sees a new shape."""


@dataclass(frozen=True)
class Facts:
    """Dimensions and decoding rules, written when the model was converted."""

    d_model: int
    n_mels: int
    n_audio_positions: int
    n_text_positions: int
    n_decoder_layers: int
    vocab_size: int
    suppress: tuple[int, ...]
    suppress_begin: tuple[int, ...]
    is_multilingual: bool

    @classmethod
    def read(cls, path: Path) -> Facts:
        """Read `facts.json`. Raises `ModelError`."""
        try:
            raw = read_json(path)
            raw["suppress"], raw["suppress_begin"] = tuple(raw["suppress"]), tuple(raw["suppress_begin"])
            return cls(**raw)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{path}: {error}", "as2d models verify, then as2d models pull") from error


class WhisperModel:
    """Graphs, embeddings and tokenizer of one converted model."""

    def __init__(
        self, folder: Path, threads: int, *, exact_rows: bool, decode_threads: int | None = None
    ) -> None:
        """Load the converted model in `folder`; the decoder runs on `decode_threads`. Raises `ModelError`.

        With `exact_rows` a lone row is padded to two, because MNN's one-row kernels round differently:
        then a row's result has the same bits whatever rows run with it. Without, rows run one at a time.
        """
        self._exact_rows = exact_rows
        self.facts = Facts.read(folder / "facts.json")
        self.tokenizer = WhisperTokenizer(folder / "tokenizer.json")
        self.features = FeatureSpec(self.facts.n_mels, 2 * self.facts.n_audio_positions)
        # read from disk on demand: a step touches a few rows of a table of tens of megabytes
        self._embeddings = np.load(folder / "embeddings.npy", mmap_mode="r")
        self._positions = np.load(folder / "positions.npy")
        cross = [f"{kind}_{i}" for i in range(self.facts.n_decoder_layers) for kind in ("key", "value")]
        self._encoder = Graph(folder / "encoder.mnn", ["mel"], cross, threads)
        outputs = ["logits", "present", "alignment"]
        inputs = ["x", "early", "late", "mask", "live", *cross]
        self._decoder = Graph(folder / "decoder.mnn", inputs, outputs, decode_threads or threads)
        self._passes: dict[int, Graph] = {}
        if exact_rows:
            self._warm_up()

    @property
    def cache_width(self) -> int:
        """Values that one cached token takes: keys and values of all layers."""
        return 2 * self.facts.n_decoder_layers * self.facts.d_model

    def encode(self, features: Features) -> list[Var]:
        """Return cross-attention keys and values per layer for `features`, shape (n_mels, even n_frames).

        Raises `ModelError` for other mel bands than `self.features` has, or more frames.
        """
        bands, frames = features.shape
        if bands != self.features.n_mels or frames > self.features.n_frames or frames % 2:
            raise ModelError(f"features of shape {features.shape}, expected {self.features.shape}")
        return self._encoder.run(constant(np.ascontiguousarray(features[None], np.float32)))

    def decode(self, audio: list[Var], cache: Cache, tokens: Sequence[int]) -> Rows:
        """Run `tokens` after the cached ones and append their keys and values to the cache.

        Raises `ModelError` if the context is too short for them.
        """
        if cache.length + len(tokens) > self.facts.n_text_positions:
            raise ModelError(
                f"{cache.length + len(tokens)} tokens in a context of {self.facts.n_text_positions}"
            )
        if self._exact_rows:
            return self._pass(self._graph_of(len(tokens)), audio, cache, tokens)
        for token in tokens[:-1]:
            self._pass(self._decoder, audio, cache, [token])
        return self._pass(self._decoder, audio, cache, tokens[-1:])

    def _pass(self, graph: Graph, audio: list[Var], cache: Cache, tokens: Sequence[int]) -> Rows:
        """One pass. The keys number a multiple of `KEY_MULTIPLE`, which exactness needs (see `graph`)."""
        start, kept = cache.length, len(tokens)
        padded = [*tokens, *[0] * (self._exact_rows and kept == 1)]
        rows = len(padded)
        x = self._embeddings[padded].astype(np.float32) + self._positions[_positions(start, rows, self)]
        keys = -(-(start + rows) // _CACHE_STEP) * _CACHE_STEP
        past = keys - rows
        mask = np.full((1, 1, keys, rows), _MASKED, np.float32)
        mask[0, 0, :start] = 0
        mask[0, 0, past:] = np.where(np.tri(rows, dtype=bool).T, np.float32(0), _MASKED)
        early, late = cache.parts(past)
        live = constant(np.zeros((kept, 1), np.float32))
        given = (constant(x[None]), early, late, constant(mask), live)
        outputs = graph.run(*given, *audio)
        cache.append(outputs[1].view()[:kept])
        return Rows(outputs, kept)

    def _graph_of(self, rows: int) -> Graph:
        """Return the decoder graph for so many rows.

        One row never shares a graph with several: MNN 3.6.1 gives wrong results, or crashes, when a broadcast
        product of one row is followed by one of several.
        """
        if rows > _OWN_GRAPHS:
            return self._decoder
        if rows not in self._passes:
            self._passes[rows] = self._decoder.clone()
        return self._passes[rows]

    def _warm_up(self) -> None:
        """Run two rows: clones share the weights of a graph that has run, and copy those of another."""
        heads, layers = self.facts.d_model // HEAD_SIZE, self.facts.n_decoder_layers
        key = constant(np.zeros((heads, 1, KEY_MULTIPLE, HEAD_SIZE), np.float32))
        value = constant(np.zeros((heads, 1, HEAD_SIZE, KEY_MULTIPLE), np.float32))
        self._pass(self._decoder, [key, value] * layers, Cache(0, self.cache_width), [0, 0])


def _positions(start: int, rows: int, model: WhisperModel) -> NDArray[np.intp]:
    """Positions of the rows; a padding row past the end of the context takes the last one."""
    positions: NDArray[np.intp] = np.minimum(np.arange(start, start + rows), model.facts.n_text_positions - 1)
    return positions


@dataclass(frozen=True)
class Rows:
    """The outputs of one pass; its arrays are valid only while it lives."""

    outputs: list[Var]
    count: int

    @property
    def logits(self) -> NDArray[np.float32]:
        """Unfiltered logits, shape (count, vocab)."""
        return self.outputs[0].view()[0, : self.count]

    @property
    def alignment(self) -> NDArray[np.float32]:
        """Mean cross-attention probabilities of the alignment heads, shape (count, frames)."""
        return self.outputs[2].view()[: self.count]


assert _CACHE_STEP % KEY_MULTIPLE == 0, "exactness of rows depends on it"


class Cache:
    """Keys and values of the tokens so far, token by token; rollback only moves `length`."""

    def __init__(self, capacity: int, width: int) -> None:
        """Room for `capacity` tokens of `width` values."""
        self.rows: NDArray[np.float32] = np.zeros((capacity + _CACHE_STEP, width), np.float32)
        self.length = 0
        self._early = self._late = constant(self.rows[:0])
        self._early_length, self._late_end, self._current = 0, 0, 0

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens. Raises `ModelError` for a length that is not cached."""
        if not 0 <= length <= self.length:
            raise ModelError(f"rollback to {length} tokens of {self.length} cached ones")
        if length < self._early_length:
            self._early, self._early_length, self._late_end = constant(self.rows[:0]), 0, 0
        self.length = length

    def parts(self, count: int) -> tuple[Var, Var]:
        """Return the first `count` rows in two parts; the first, cached tokens only, is copied seldom."""
        length = self.length // _CACHE_STEP * _CACHE_STEP
        if length != self._early_length:
            self._early, self._early_length = constant(self.rows[:length]), length
            self._late_end = 0
        if count != self._late_end:
            self._late, self._late_end = constant(self.rows[length:count]), count
        else:  # written in place: making a tensor of this size anew takes 5 % of a step
            new = slice(self._current, self.length)
            self._late.view()[new.start - length : new.stop - length] = self.rows[new]
        self._current = self.length
        return self._early, self._late

    def append(self, rows: NDArray[np.float32]) -> None:
        """Add the keys and values of new tokens, shape (R, width)."""
        self._current = min(self._current, self.length)
        self.rows[self.length : self.length + len(rows)] = rows
        self.length += len(rows)
