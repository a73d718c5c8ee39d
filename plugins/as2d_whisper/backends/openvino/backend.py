"""A Whisper on OpenVINO: its graphs, and passes over keys and values that stay in the engine's type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features
from as2d_whisper.backends.backend import MAX_ROWS, Rows, check_rollback
from as2d_whisper.backends.openvino.runtime import Graph, data, new_tensor
from as2d_whisper.facts import Facts
from as2d_whisper.layout import HEAD_SIZE

_MASKED = np.float32(-1e9)
_ROWS = (2, 8, 16, MAX_ROWS)
"""Passes are padded to one of these numbers of rows: few shapes to lay out. Never one row, see `graph`."""
_POSITIONS_STEP = 64
"""Positions grow by so many: attention to few costs less, and shapes stay few."""


class OpenVinoAudio:
    """An encoded window: keys and values by the decoder's input that takes them."""

    def __init__(self, facts: Facts, frames: int) -> None:
        """Room for keys and values, shape (1, h, frames, 64), of all layers."""
        shape = (1, facts.d_model // HEAD_SIZE, frames, HEAD_SIZE)
        names = [f"{kind}_{layer}" for layer in range(facts.n_decoder_layers) for kind in ("key", "value")]
        self.encoded = {name: new_tensor(shape, facts.precision) for name in names}
        """By the encoder's output."""

    def heard(self) -> dict[str, Any]:
        """Return the tensors by the decoder's input."""
        return {f"audio_{name}": tensor for name, tensor in self.encoded.items()}


class OpenVinoCache:
    """Keys and values of the tokens so far, each layer's by positions; rollback only moves `length`."""

    def __init__(self, facts: Facts) -> None:
        """Begin empty."""
        self.length = 0
        self.capacity = 0
        """Positions that there are."""
        self._facts = facts
        self.tensors: dict[str, Any] = {}
        """Keys and values, shape (1, h, capacity, 64), by the decoder's input."""

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens. Raises `ModelError` for a length that is not cached."""
        check_rollback(length, self.length)
        self.length = length

    def grow(self, length: int) -> bool:
        """Make room for `length` positions; tell whether the tensors are others now."""
        if length <= self.capacity:
            return False
        self.capacity = -(-length // _POSITIONS_STEP) * _POSITIONS_STEP
        shape = (1, self._facts.d_model // HEAD_SIZE, self.capacity, HEAD_SIZE)
        for layer in range(self._facts.n_decoder_layers):
            for name in (f"text_key_{layer}", f"text_value_{layer}"):
                tensor = new_tensor(shape, self._facts.precision)
                if name in self.tensors:
                    data(tensor)[:, :, : self.length] = data(self.tensors[name])[:, :, : self.length]
                self.tensors[name] = tensor
        return True

    def append(self, graph: Graph, rows: int) -> None:
        """Add the first `rows` of the keys and values that a pass gave."""
        kept = slice(self.length, self.length + rows)
        for name, tensor in self.tensors.items():
            data(tensor)[:, :, kept] = graph.output(name.replace("text_", "new_"))[:, :, :rows]
        self.length += rows


class OpenVinoBackend:
    """Encoder and decoder as OpenVINO runs them."""

    def __init__(
        self, folder: Path, facts: Facts, *, threads: int, decode_threads: int, exact_rows: bool
    ) -> None:
        """Compile the graphs in `folder`. Raises `ModelError`.

        With `exact_rows` passes have two rows or more, because one row alone takes other kernels.
        """
        self._facts = facts
        self._row_counts = _ROWS if exact_rows else (1, *_ROWS)
        self._encoder = Graph(folder / "encoder.xml", threads=threads, precision=facts.precision)
        self._decoder = Graph(folder / "decoder.xml", threads=decode_threads, precision=facts.precision)
        self._bound: tuple[object, object] = (None, None)

    def encode(self, features: Features) -> OpenVinoAudio:
        """Return cross-attention keys and values per layer; they stay valid."""
        audio = OpenVinoAudio(self._facts, features.shape[1] // 2)
        self._encoder.bind(audio.encoded)
        self._encoder.run({"mel": np.ascontiguousarray(features[None], np.float32)})
        return audio

    def new_cache(self) -> OpenVinoCache:
        """Return an empty cache."""
        return OpenVinoCache(self._facts)

    def run(self, audio: OpenVinoAudio, cache: OpenVinoCache, embedded: NDArray[np.float32]) -> Rows:
        """Run rows after the cached ones and append their keys and values to the cache."""
        kept = len(embedded)
        rows = next(count for count in self._row_counts if count >= kept)
        self._bind(audio, cache, rows)
        x = np.zeros((1, rows, self._facts.d_model), np.float32)
        x[0, :kept] = embedded
        positions = np.arange(cache.length, cache.length + rows, dtype=np.int32)
        is_ahead = np.arange(cache.capacity) > positions[:, None]
        mask = np.where(is_ahead, _MASKED, np.float32(0))[None, None]
        self._decoder.run({"x": x, "positions": positions, "mask": mask})
        cache.append(self._decoder, kept)
        logits, alignment = self._decoder.output("logits"), self._decoder.output("alignment")
        return Rows(logits[0, :kept], alignment[0, :kept])

    def _bind(self, audio: OpenVinoAudio, cache: OpenVinoCache, rows: int) -> None:
        """Let the decoder read the window and the cache, with room for so many rows."""
        has_grown = cache.grow(cache.length + rows)
        if self._bound[0] is not audio:
            self._decoder.bind(audio.heard())
        if self._bound[1] is not cache or has_grown:
            self._decoder.bind(cache.tensors)
        self._bound = (audio, cache)
