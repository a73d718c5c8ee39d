"""A Whisper on MNN: its graphs, and passes over an explicit key/value cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features
from as2d_whisper.backends.backend import Rows, check_rollback
from as2d_whisper.backends.mnn.calls import Graph, Var, constant
from as2d_whisper.facts import Facts
from as2d_whisper.layout import HEAD_SIZE, KEY_MULTIPLE

_MASKED = np.float32(-1e9)
_OWN_GRAPHS = 8
"""Passes of up to so many rows have a graph each, of 3 MB: laying one out for another number takes 1 ms."""
_CACHE_STEP = 32
"""Cached keys are handed over in multiples of this, so that MNN seldom sees a new shape."""
assert _CACHE_STEP % KEY_MULTIPLE == 0, "exactness of rows depends on it"


class MnnCache:
    """Keys and values of the tokens so far, token by token; rollback only moves `length`."""

    def __init__(self, capacity: int, width: int) -> None:
        """Room for `capacity` tokens of `width` values."""
        self.rows: NDArray[np.float32] = np.zeros((capacity + _CACHE_STEP, width), np.float32)
        self.length = 0
        self._early = self._late = constant(self.rows[:0])
        self._early_length, self._late_end, self._current = 0, 0, 0

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens. Raises `ModelError` for a length that is not cached."""
        check_rollback(length, self.length)
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


class MnnBackend:
    """Encoder and decoder as MNN runs them."""

    def __init__(
        self, folder: Path, facts: Facts, *, threads: int, decode_threads: int, exact_rows: bool
    ) -> None:
        """Load the graphs in `folder`. Raises `ModelError`.

        With `exact_rows` a lone row is padded to two, because MNN's one-row kernels round differently.
        Without, rows run one at a time.
        """
        self._facts = facts
        self._exact_rows = exact_rows
        self._width = 2 * facts.n_decoder_layers * facts.d_model
        cross = [f"{kind}_{i}" for i in range(facts.n_decoder_layers) for kind in ("key", "value")]
        self._encoder = Graph(folder / "encoder.mnn", ["mel"], cross, threads)
        outputs = ["logits", "present", "alignment"]
        inputs = ["x", "early", "late", "mask", "live", *cross]
        self._decoder = Graph(folder / "decoder.mnn", inputs, outputs, decode_threads)
        self._passes: dict[int, Graph] = {}
        if exact_rows:
            self._warm_up()

    def encode(self, features: Features) -> list[Var]:
        """Return cross-attention keys and values per layer; they stay valid."""
        return self._encoder.run(constant(np.ascontiguousarray(features[None], np.float32)))

    def new_cache(self) -> MnnCache:
        """Return an empty cache."""
        return MnnCache(self._facts.n_text_positions, self._width)

    def run(self, audio: list[Var], cache: MnnCache, embedded: NDArray[np.float32]) -> Rows:
        """Run rows after the cached ones and append their keys and values to the cache."""
        if self._exact_rows:
            return self._pass(self._graph_of(len(embedded)), audio, cache, embedded)
        for row in range(len(embedded) - 1):
            self._pass(self._decoder, audio, cache, embedded[row : row + 1])
        return self._pass(self._decoder, audio, cache, embedded[-1:])

    def _pass(self, graph: Graph, audio: list[Var], cache: MnnCache, embedded: NDArray[np.float32]) -> Rows:
        """One pass. The keys number a multiple of `KEY_MULTIPLE`, which exactness needs (see `graph`)."""
        start, kept = cache.length, len(embedded)
        if self._exact_rows and kept == 1:
            embedded = np.repeat(embedded, 2, axis=0)
        rows = len(embedded)
        keys = -(-(start + rows) // _CACHE_STEP) * _CACHE_STEP
        past = keys - rows
        mask = np.full((1, 1, keys, rows), _MASKED, np.float32)
        mask[0, 0, :start] = 0
        mask[0, 0, past:] = np.where(np.tri(rows, dtype=bool).T, np.float32(0), _MASKED)
        early, late = cache.parts(past)
        live = constant(np.zeros((kept, 1), np.float32))
        given = (constant(embedded[None]), early, late, constant(mask), live)
        outputs = graph.run(*given, *audio)
        cache.append(outputs[1].view()[:kept])
        return Rows(outputs[0].view()[0, :kept], outputs[2].view()[:kept], outputs)

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
        heads, layers = self._facts.d_model // HEAD_SIZE, self._facts.n_decoder_layers
        key = constant(np.zeros((heads, 1, KEY_MULTIPLE, HEAD_SIZE), np.float32))
        value = constant(np.zeros((heads, 1, HEAD_SIZE, KEY_MULTIPLE), np.float32))
        rows = np.zeros((2, self._facts.d_model), np.float32)
        self._pass(self._decoder, [key, value] * layers, MnnCache(0, self._width), rows)
