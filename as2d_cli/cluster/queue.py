"""What is left to decode, who has which of it in work, and what becomes of it when an engine is lost.

Each file, and each window of a divided one, is a key. A key may be in work twice; what comes first counts.
A key in whose decoding engines were lost `ATTEMPTS` times is given up. No Ray here: engines are numbers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import FilePiece, Key, Piece, WindowPiece

ATTEMPTS = 3
"""How often a file is begun before it is given up: it is retried twice."""
FILES_AT_ONCE = 16
_ROUNDS = 2
"""Every engine gets about so many more pieces of files, ever smaller ones, so that all end together."""
_LOW = 2
"""An engine with no more keys than this is given its next piece, so that it never waits."""
_READ_AHEAD = 4
"""Keys after the one in work that an engine may have begun to read, too."""
_PATIENCE, _PATIENCE_S = 4.0, 10.0
"""A last key is a straggler after so many times the usual, and after so many seconds at least."""


@dataclass
class _InWork:
    """A piece that an engine has."""

    piece: Piece
    left: dict[Key, None]
    """What has not come back, in order."""
    begun: float
    """When the first of `left` was, at the latest."""
    copied: set[Key] = field(default_factory=set)


class WorkQueue:
    """Knows the state of every key of a run."""

    def __init__(self, items: Sequence[Item], clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with `items`, to be decoded in this order as far as possible."""
        self._fresh = deque(items)
        self._urgent: deque[Piece] = deque()
        self._open: set[Key] = set()  # handed out, or about to be, and not come back
        self._attempts: dict[Key, int] = {}
        self._engines: dict[int, list[_InWork]] = {}
        self._clock = clock
        self._usual_s = 0.0

    def add(self, pieces: Iterable[WindowPiece]) -> None:
        """Take windows, which go before files that have not been begun."""
        for piece in pieces:
            self._open.update(piece.keys)
            self._urgent.append(piece)

    def drop(self, number: int) -> None:
        """Forget all of a file, which is over."""
        self._open -= {key for key in self._open if key[0] == number}

    def next_for(self, engine: int, engines: int) -> Piece | None:
        """Return what an engine, one of so many, is to do next, if it is to be given anything."""
        have = self._engines.setdefault(engine, [])
        if sum(len(one.left) for one in have) > _LOW:
            return None
        piece = self._queued(engines)
        if piece is None and not have:
            piece = self._stolen(engine)
        if piece is not None:
            have.append(_InWork(piece, dict.fromkeys(piece.keys), self._clock()))
        return piece

    def _queued(self, engines: int) -> Piece | None:
        while self._urgent:
            piece = _only(self._urgent.popleft(), self._open)
            if piece is not None:
                return piece
        count = max(1, min(FILES_AT_ONCE, len(self._fresh) // (_ROUNDS * engines)))
        items = tuple(self._fresh.popleft() for _ in range(min(count, len(self._fresh))))
        piece = FilePiece(items)
        self._open.update(piece.keys)
        return piece if items else None

    def _stolen(self, engine: int) -> Piece | None:
        """Return the last key of the fullest other engine; its only one just if that takes long."""
        others = [one for other, have in self._engines.items() if other != engine for one in have]
        for one in sorted(others, key=lambda one: -len(one.left)):
            uncopied = [key for key in one.left if key in self._open and key not in one.copied]
            patience_s = max(_PATIENCE_S, _PATIENCE * self._usual_s)
            if uncopied and (len(one.left) > 1 or self._clock() - one.begun > patience_s):
                one.copied.add(uncopied[-1])
                return _only(one.piece, {uncopied[-1]})
        return None

    def came(self, engine: int, key: Key, *, failed: bool = False) -> bool:
        """Note that an engine sent a key; tell whether that counts.

        It does not if somebody else was first, or if it `failed` and is to be tried again, by itself.
        """
        now, single = self._clock(), None
        for one in self._engines.get(engine, []):
            if key in one.left:
                self._usual_s = 0.8 * self._usual_s + 0.2 * (now - one.begun)
                single = _only(one.piece, {key})
                del one.left[key]
            one.begun = now
        self._engines[engine] = [one for one in self._engines.get(engine, []) if one.left]
        if key not in self._open:
            return False
        self._open.remove(key)
        return not (failed and single is not None and self._tried(key, single))

    def _tried(self, key: Key, piece: Piece) -> bool:
        self._attempts[key] = self._attempts.get(key, 0) + 1
        if self._attempts[key] >= ATTEMPTS:
            return False
        self._open.add(key)
        self._urgent.append(piece)
        return True

    def lost(self, engine: int) -> list[Key]:
        """Note that an engine is gone; return the keys given up, as too many were lost with them.

        What it had in work, or may have been reading ahead, goes to others one by one, as one of these keys
        may be what ended it. The rest of a piece stays together.
        """
        gone: list[Key] = []
        suspects = 1 + _READ_AHEAD
        is_first = True
        for one in self._engines.pop(engine, []):
            left = [key for key in one.left if key in self._open and not self._is_elsewhere(key)]
            for key in left[:suspects]:
                single = _only(one.piece, {key})
                if single is None:
                    continue
                if not is_first:
                    self._urgent.append(single)
                elif not self._tried(key, single):
                    self._open.discard(key)
                    gone.append(key)
                is_first = False
            rest = _only(one.piece, set(left[suspects:]))
            if rest is not None:
                self._urgent.append(rest)
            suspects = max(0, suspects - len(left))
        return gone

    def _is_elsewhere(self, key: Key) -> bool:
        return any(key in one.left for have in self._engines.values() for one in have)


def _only(piece: Piece, keys: set[Key]) -> Piece | None:
    """Return that part of a piece which has one of `keys`, None if there is nothing of it."""
    if isinstance(piece, FilePiece):
        items = tuple(item for item, key in zip(piece.items, piece.keys, strict=True) if key in keys)
        return FilePiece(items) if items else None
    indexes = tuple(index for index, key in zip(piece.indexes, piece.keys, strict=True) if key in keys)
    return replace(piece, indexes=indexes) if indexes else None
