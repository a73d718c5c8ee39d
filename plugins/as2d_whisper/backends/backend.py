"""What the plugin asks of an engine: encode a window, run decoder rows over a key/value cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features, ModelError

AlignmentHeads: TypeAlias = Sequence[tuple[int, int]]
"""(layer, head) of the decoder's heads that follow the speech."""
MAX_ROWS = 24
"""Most rows that verifying needs in one pass; longer prompts go in several."""


class Audio(Protocol):
    """An encoded window: the cross-attention keys and values, in the backend's own form."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a pass gave for its rows; the arrays are valid until the next pass, and may be written to."""

    logits: NDArray[np.float32]
    """Unfiltered, shape (rows, vocab)."""
    alignment: NDArray[np.float32]
    """Mean cross-attention probabilities of the alignment heads, shape (rows, frames)."""
    memory: object = None
    """What keeps the arrays alive."""


class Cache(Protocol):
    """Keys and values of the tokens so far."""

    @property
    def length(self) -> int:
        """Tokens that are cached."""

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens. Raises `ModelError` for a length that is not cached."""


class Backend(Protocol):
    """A loaded model on an engine."""

    def encode(self, features: Features) -> Audio:
        """Encode `features` of shape (n_mels, even n_frames), at most a window's.

        What it returns stays valid when another window is encoded.
        """

    def new_cache(self) -> Cache:
        """Return an empty cache with room for the whole context."""

    def run(self, audio: Audio, cache: Cache, embedded: NDArray[np.float32]) -> Rows:
        """Run rows after the cached ones and append their keys and values to the cache.

        `embedded`, shape (rows, d_model), are tokens with their positions added: at most `MAX_ROWS`, and
        there is room for them. With exact rows a row's results have the same bits whatever rows run with it.
        """


def check_rollback(length: int, cached: int) -> None:
    """Raise `ModelError` unless the first `length` of so many `cached` tokens can be kept."""
    if not 0 <= length <= cached:
        raise ModelError(f"rollback to {length} tokens of {cached} cached ones")


def weight_bits(options: Mapping[str, object], name: str, default: int, possible: Collection[int]) -> int:
    """Return an option that is a precision of weights. Raises `ModelError` for one that is impossible."""
    value = options.get(name, default)
    if type(value) is not int or value not in possible:
        raise ModelError(f"option {name} is {value!r}; expected one of {possible}")
    return value
