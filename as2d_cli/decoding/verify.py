"""What the target's decisions make of the candidates. Pure; knows no cache and no stream."""

from __future__ import annotations

from collections.abc import Sequence


def count_accepted(decided: Sequence[int], candidates: Sequence[int]) -> int:
    """Count the leading candidates that the target would have chosen itself.

    `decided[i]` is the target's choice after the pending token and the first i candidates, so
    `candidates[i]` is compared with `decided[i]`; `decided` is at least as long as `candidates`.

    >>> count_accepted([5, 6, 9], [5, 6])
    2
    >>> count_accepted([5, 7, 9], [5, 6])
    1
    """
    for index, candidate in enumerate(candidates):
        if decided[index] != candidate:
            return index
    return len(candidates)


def cut(tokens: Sequence[int], end_id: int, limit: int) -> tuple[int, ...]:
    """Cut `tokens` after the first end id and to at most `limit`, where plain decoding would stop.

    >>> cut([5, 0, 6], end_id=0, limit=9)
    (5, 0)
    >>> cut([5, 6, 0], end_id=0, limit=2)
    (5, 6)
    """
    kept = tuple(tokens[:limit])
    return kept[: kept.index(end_id) + 1] if end_id in kept else kept
