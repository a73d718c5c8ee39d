"""Mixes the channels of a recording into one: what is said in it, not what is loudest.

The weights are those of ITU-R BS.775 for mono. Where channels differ, those in which nobody speaks are left
out, and where somebody speaks in a centre channel, all others: effects and music would drown the dialogue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import soxr
from numpy.typing import NDArray

from as2d_cli.audio.readers import DEFAULT_LAYOUTS, Chunk
from as2d_cli.audio.tracks import MIX
from as2d_cli.audio.vad import SpeechDetector
from as2d_cli.domain.errors import AudioError, ModelError
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Samples

_CENTRES = frozenset({"FC", "C"})
_FRONTS = frozenset({"FL", "FR", "FLC", "FRC", "L", "R", "Lc", "Rc", "DL", "DR"})
_LOW = frozenset({"LFE", "LFE2"})
_SURROUND_WEIGHT = 0.5
_CANCELLED_SHARE = 0.05
_SILENT_POWER = 1e-8
_AUDIBLE_POWER = 1e-6
_AUDIBLE_SHARE = 1e-5
"""A channel 50 dB below the loudest neither says nor drowns anything."""
_ALIKE = 0.5
"""Channels that correlate more than this hold the same."""
_MOST_CHANNELS = 8
"""With more, listening to each takes longer than transcribing."""
_SHORTEST_S = 0.3
_FADE_S = 0.02


@dataclass(slots=True)
class _Block:
    """About a second of all channels, and what is known of them."""

    samples: NDArray[np.float32]
    rate: int
    weights: NDArray[np.float32]
    """Of the channels, (n_channels,); their sum is 1."""
    products: NDArray[np.float32]
    """Mean products of each two channels, (n_channels, n_channels)."""
    centre: int | None
    speaking: frozenset[int]
    """Channels in which somebody speaks, if the channels differ."""
    at_s: float


class Downmix:
    """Mixes one file's channels; which are heard depends on the second before and after, too."""

    def __init__(self, name: str, channel: str | None = None) -> None:
        """`name` is the file's, for messages; `channel` as in `AudioChoice`. Nothing is loaded yet."""
        self.cancelled_at_s: float | None = None
        """Where channels cancelled each other first, seconds; None: nowhere."""
        self._name, self._channel = name, channel
        self._detector = SpeechDetector()
        self._faded: NDArray[np.float32] | None = None

    def mono(self, chunks: Iterator[Chunk]) -> Iterator[tuple[Samples, int]]:
        """Yield each chunk mixed, and its rate, one chunk later than it comes.

        Raises `AudioError` if there is no such channel, `ModelError` if the speech detector is needed and
        cannot be loaded.
        """
        before: frozenset[int] = frozenset()
        held: _Block | None = None
        at_s = 0.0
        for chunk in chunks:
            block = self._block(chunk, at_s)
            at_s += len(chunk.samples) / chunk.rate
            if held is not None:
                goes_on = len(held.weights) == len(block.weights)
                yield self._mixed(held, before | (block.speaking if goes_on else frozenset())), held.rate
                before = held.speaking if goes_on else frozenset()
            held = block
        if held is not None:
            yield self._mixed(held, before), held.rate

    def _block(self, chunk: Chunk, at_s: float) -> _Block:
        samples, rate, layout = chunk
        if self._channel not in {None, MIX}:
            samples, layout = self._chosen(samples, int(self._channel)), ()
        weights = _weights(layout or DEFAULT_LAYOUTS.get(samples.shape[1], ()), samples.shape[1])
        products = samples.T @ samples / np.float32(len(samples))
        centre = next((index for index, name in enumerate(layout) if name in _CENTRES), None)
        block = _Block(samples, rate, weights, products, centre, frozenset(), at_s)
        if (
            self._channel is None
            and 1 < len(weights) <= _MOST_CHANNELS
            and len(samples) >= _SHORTEST_S * rate
        ):
            block.speaking = self._speaking(block, is_known=bool(layout))
        return block

    def _chosen(self, samples: NDArray[np.float32], number: int) -> NDArray[np.float32]:
        n_channels = samples.shape[1]
        if n_channels == 1:
            return samples
        if number > n_channels:
            raise AudioError(f"{self._name}: no channel {number}", f"it has {n_channels}")
        return samples[:, number - 1 : number]

    def _speaking(self, block: _Block, *, is_known: bool) -> frozenset[int]:
        """Return the channels in which somebody speaks; none if all hold the same, or there is but one.

        Without a known layout a low-frequency channel may as well be a microphone.
        """
        powers = block.products.diagonal()
        least = max(_AUDIBLE_POWER, _AUDIBLE_SHARE * float(powers.max()))
        audible = np.flatnonzero((powers > least) & ((block.weights > 0) | (not is_known)))
        levels = np.sqrt(powers[audible])
        alike = np.abs(block.products[np.ix_(audible, audible)]) > _ALIKE * np.outer(levels, levels)
        if alike.all():
            return frozenset()
        if block.centre is not None and block.centre in audible and self._hears(block, block.centre):
            return frozenset({block.centre})
        others = (int(index) for index in audible if index != block.centre)
        return frozenset(index for index in others if self._hears(block, index))

    def _hears(self, block: _Block, index: int) -> bool:
        channel = np.ascontiguousarray(block.samples[:, index])
        try:
            return self._detector.hears_speech(soxr.resample(channel, block.rate, SAMPLE_RATE_HZ, "LQ"))
        except ModelError as error:
            raise ModelError(error.message, "--no-vad --channel mix transcribes without it") from error

    def _mixed(self, block: _Block, nearby: frozenset[int]) -> Samples:
        """Return one channel; `nearby` are those in which somebody speaks just before or after."""
        samples = block.samples
        if samples.shape[1] == 1:
            self._faded = None
            return samples[:, 0]
        is_centre = block.centre is not None and block.centre in block.speaking
        weights = _only(block.speaking if is_centre else block.speaking | nearby, block.weights)
        powers = block.products.diagonal()
        mixed = float(weights @ block.products @ weights)
        if powers.max() >= _SILENT_POWER and mixed <= _CANCELLED_SHARE * float(weights**2 @ powers):
            if self.cancelled_at_s is None:
                self.cancelled_at_s = block.at_s
            self._faded = None
            return np.ascontiguousarray(samples[:, int((powers * (weights > 0)).argmax())])
        return self._crossfaded(samples, weights, round(_FADE_S * block.rate))

    def _crossfaded(self, samples: NDArray[np.float32], weights: NDArray[np.float32], length: int) -> Samples:
        """Return the mix; where other weights come to hold, `length` samples lead over to them."""
        mono: Samples = samples @ weights
        former, self._faded = self._faded, weights
        if former is not None and len(former) == len(weights) and not np.array_equal(former, weights):
            head = samples[:length]
            rise = np.linspace(0.0, 1.0, len(head), dtype=np.float32)
            mono[:length] += (1.0 - rise) * (head @ (former - weights))
        return mono


def _weights(layout: tuple[str, ...], n_channels: int) -> NDArray[np.float32]:
    """Return the weights of the channels of a layout, equal ones for an unknown one; their sum is 1."""
    weights = np.ones(n_channels)
    if layout:
        weights = np.array([_weight(name) for name in layout])
    return np.asarray(
        weights / weights.sum() if weights.any() else np.full(n_channels, 1 / n_channels), np.float32
    )


def _weight(name: str) -> float:
    if name in _CENTRES:
        return 1.0
    if name in _LOW:
        return 0.0
    return 0.5**0.5 if name in _FRONTS else _SURROUND_WEIGHT


def _only(chosen: frozenset[int], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the weights as if all channels but the chosen ones were silent; all count if none is chosen."""
    if not chosen:
        return weights
    least = weights[weights > 0].min()  # also of what its layout takes for a low-frequency channel
    return np.array(
        [max(weight, least) if index in chosen else 0.0 for index, weight in enumerate(weights)], np.float32
    )
