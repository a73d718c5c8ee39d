"""Cuts a stream of audio into windows that a model can take, at the quietest places, losing nothing.

The cuts depend on the audio alone, never on what a model made of it, so that a drafter may run ahead into
later windows. Nothing is dropped: whether a window is silent is decided by `vad`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import merge
from itertools import chain, islice, tee

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.types import SAMPLE_RATE_HZ, WINDOW_S, Samples, Window

_LONGEST = int(WINDOW_S * SAMPLE_RATE_HZ)
_SEARCH = 12 * SAMPLE_RATE_HZ
"""A cut is looked for in this many last samples of the longest window."""
_SHORTEST_REST = 8 * SAMPLE_RATE_HZ
"""The last window gets at least this: a model does badly on a second without context."""
_LOOKAHEAD = _LONGEST + _SHORTEST_REST
_HOP = SAMPLE_RATE_HZ // 100
_SPANS_HOPS = (10, 30, 60)
"""A place is as quiet as the 0.1, 0.3 and 0.6 s around it are on average (in dB): the first keeps a cut
out of words, the others tell a pause between sentences from the closure of a stop consonant."""
_LOUD_QUANTILE = 0.8
_PAUSE_DB = 25.0
"""Places this far below the level of speech are pauses, however deep; which is taken is a matter of time."""
_EARLIER_DB_PER_S = 0.75
"""How much quieter a place must be to be preferred to one a second later; short windows cost a model
as much as long ones."""
_FLOOR_POWER = 1e-10


def split(blocks: Iterable[Samples]) -> Iterator[Window]:
    """Yield windows of at most `WINDOW_S` that together are exactly the samples of `blocks`.

    How the audio was divided into blocks makes no difference. Holds at most `WINDOW_S` + 8 s and one
    block. No blocks, no windows.
    """
    held: list[Samples] = []
    n_held = start = index = 0
    for block in chain(blocks, [None]):
        if block is not None:
            held.append(block)
            n_held += len(block)
        enough = 1 if block is None else _LOOKAHEAD
        while n_held >= enough:
            window, rest = _cut(held[0] if len(held) == 1 else np.concatenate(held))
            yield Window(index, start, window)
            index, start = index + 1, start + len(window)
            held, n_held = [rest], len(rest)


def split_apart(blocks: Iterable[Samples]) -> Iterator[Window]:
    """Yield the windows of each channel of `blocks`, which are (n_samples, n_channels), as they begin.

    Mono has no channels to be told apart. Holds each channel for at most as long as `split` holds audio.
    """
    first, blocks = _peeked(blocks)
    numbers = range(1, first.shape[1] + 1)
    if len(numbers) == 1:
        yield from split(block[:, 0] for block in blocks)
        return
    apart = (
        _of_channel(number, copy) for number, copy in zip(numbers, tee(blocks, len(numbers)), strict=True)
    )
    for index, window in enumerate(merge(*apart, key=lambda window: window.start)):
        yield replace(window, index=index)


def _peeked(blocks: Iterable[Samples]) -> tuple[Samples, Iterator[Samples]]:
    """Return the first of the blocks, an empty one if there is none, and all of them."""
    rest = iter(blocks)
    first = list(islice(rest, 1))
    return (first or [np.empty((0, 1), np.float32)])[0], chain(first, rest)


def _of_channel(number: int, blocks: Iterator[Samples]) -> Iterator[Window]:
    columns = (np.ascontiguousarray(block[:, number - 1]) for block in blocks)
    return (replace(window, channel=number) for window in split(columns))


def _cut(samples: Samples) -> tuple[Samples, Samples]:
    """Return the next window of `samples`, which begin it, and what is left."""
    if len(samples) <= _LONGEST:
        return samples, samples[:0]
    latest = min(_LONGEST, len(samples) - _SHORTEST_REST)
    place = _quietest(samples[: latest + _SPANS_HOPS[-1] * _HOP], latest - _SEARCH, latest)
    return samples[:place].copy(), samples[place:]


def _quietest(samples: Samples, earliest: int, latest: int) -> int:
    """Return the sample from `earliest` to `latest` where a cut does the least harm, preferring late ones.

    In steady sound, and in silence, that is the last place.
    """
    levels_db = np.mean([_levels_db(samples, span) for span in _SPANS_HOPS], axis=0)
    pause_db = float(np.quantile(levels_db, _LOUD_QUANTILE)) - _PAUSE_DB
    places = np.arange(len(levels_db)) * _HOP
    lateness_db = (latest - places) / SAMPLE_RATE_HZ * _EARLIER_DB_PER_S
    scores = np.maximum(levels_db, pause_db) + lateness_db
    scores[(places < earliest) | (places > latest)] = np.inf
    best = int(np.argmin(scores))
    nearby = slice(max(0, best - _SPANS_HOPS[-1] // 2), best + _SPANS_HOPS[-1] // 2)
    # The latest place of a pause is its edge; go to its middle.
    return int(places[nearby][int(np.argmin(np.where(np.isinf(scores), np.inf, levels_db)[nearby]))])


def _levels_db(samples: Samples, span: int) -> NDArray[np.float64]:
    """Return the mean level of the `span` hops around the start of each hop, fewer at the ends."""
    n_hops = len(samples) // _HOP
    hops = samples[: n_hops * _HOP].reshape(n_hops, _HOP)
    powers = np.einsum("ij,ij->i", hops, hops, dtype=np.float64) / _HOP
    sums = np.concatenate([[0.0], np.cumsum(powers)])
    first = np.maximum(np.arange(n_hops) - span // 2, 0)
    last = np.minimum(np.arange(n_hops) + span // 2, n_hops)
    means = (sums[last] - sums[first]) / (last - first)
    return np.asarray(10.0 * np.log10(np.maximum(means, _FLOOR_POWER)))
