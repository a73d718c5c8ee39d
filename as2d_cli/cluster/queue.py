"""What is left to decode, what each engine has in work, and what becomes of that when an engine is lost.

No Ray here: engines are numbers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from as2d_cli.batch.work import Item
from as2d_cli.cluster.messages import FilePiece, Key, Piece, WindowPiece

ATTEMPTS = 3
"""How often a key is begun before it is given up: it is retried twice."""
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
class _Assignment:
    """A piece that an engine has in work."""

    piece: Piece
    left: dict[Key, None]
    """The keys without a result so far, in order."""
    begun: float
    """When the first key of `left` was begun, at the latest."""
    copied: set[Key] = field(default_factory=set)
    """Keys that a second engine has in work, too."""


class WorkQueue:
    """Every key of a run, from the moment it can be decoded until its result counts.

    A key is a file, or a window of a divided file. Its life:

                   next_piece                  accept
        waiting ----------------> in work ----------------> done
           ^                       |  ^ |
           |  accept(failed=True)  |  | | next_piece of an idle engine: the key is in work twice,
           |  remove_engine        |  +-+ the first result counts
           +-----------------------+
                                   |  the same, the attempt being the last of `ATTEMPTS`
                                   +------------------------------------------------------> given up

    Keys that wait or are in work are open. `drop_file` closes all keys of a file, wherever they are.
    """

    def __init__(self, items: Sequence[Item], clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with `items`, to be decoded in this order as far as possible."""
        self._files = deque(items)
        self._urgent: deque[Piece] = deque()  # goes before files that have not been begun
        self._open: set[Key] = set()  # but for those of `_files`
        self._attempts: dict[Key, int] = {}
        self._assignments: dict[int, list[_Assignment]] = {}  # by engine
        self._clock = clock
        self._usual_s = 0.0  # moving average of what a key takes

    def add_windows(self, pieces: Iterable[WindowPiece]) -> None:
        """Add windows, which go before files that have not been begun."""
        for piece in pieces:
            self._open.update(piece.keys)
            self._urgent.append(piece)

    def drop_file(self, number: int) -> None:
        """Close all keys of a file, which is finished."""
        self._open -= {key for key in self._open if key[0] == number}

    def next_piece(self, engine: int, n_engines: int) -> Piece | None:
        """Return what an engine, one of `n_engines`, is to do next, None if it is to be given nothing."""
        assignments = self._assignments.setdefault(engine, [])
        if sum(len(assignment.left) for assignment in assignments) > _LOW:
            return None
        piece = self._pop_waiting(n_engines)
        if piece is None and not assignments:
            piece = self._copy_of_straggler(engine)
        if piece is not None:
            assignments.append(_Assignment(piece, dict.fromkeys(piece.keys), self._clock()))
        return piece

    def _pop_waiting(self, n_engines: int) -> Piece | None:
        while self._urgent:
            piece = _part(self._urgent.popleft(), self._open)
            if piece is not None:
                return piece
        count = max(1, min(FILES_AT_ONCE, len(self._files) // (_ROUNDS * n_engines)))
        items = tuple(self._files.popleft() for _ in range(min(count, len(self._files))))
        piece = FilePiece(items)
        self._open.update(piece.keys)
        return piece if items else None

    def _copy_of_straggler(self, engine: int) -> Piece | None:
        """Return the last key of the fullest other engine; its only key just if that takes long."""
        others = [
            assignment
            for other, assignments in self._assignments.items()
            for assignment in assignments
            if other != engine
        ]
        patience_s = max(_PATIENCE_S, _PATIENCE * self._usual_s)
        for other in sorted(others, key=lambda other: -len(other.left)):
            uncopied = [key for key in other.left if key in self._open and key not in other.copied]
            if uncopied and (len(other.left) > 1 or self._clock() - other.begun > patience_s):
                other.copied.add(uncopied[-1])
                return _part(other.piece, {uncopied[-1]})
        return None

    def accept(self, engine: int, key: Key, *, failed: bool = False) -> bool:
        """Take the result of a key from an engine; tell whether it counts.

        It does not if another engine was first, or if it `failed` and the key is tried again, by itself.
        """
        piece = self._unassign(engine, key)
        if key not in self._open:
            return False
        if failed and piece is not None and self._may_retry(key):
            self._urgent.append(piece)
            return False
        self._open.remove(key)
        return True

    def _unassign(self, engine: int, key: Key) -> Piece | None:
        """Take a key from an engine and begin to time its next; return a piece of that key alone."""
        now, piece = self._clock(), None
        for assignment in self._assignments.get(engine, []):
            if key in assignment.left:
                self._usual_s = 0.8 * self._usual_s + 0.2 * (now - assignment.begun)
                piece = _part(assignment.piece, {key})
                del assignment.left[key]
            assignment.begun = now
        self._assignments[engine] = [
            assignment for assignment in self._assignments.get(engine, []) if assignment.left
        ]
        return piece

    def _may_retry(self, key: Key) -> bool:
        """Count an attempt that went wrong; tell whether another is left."""
        self._attempts[key] = self._attempts.get(key, 0) + 1
        return self._attempts[key] < ATTEMPTS

    def remove_engine(self, engine: int) -> Key | None:
        """Let others do what a lost engine had; return the key given up, if this was its last attempt.

        Only the key in work is charged with an attempt. It goes out by itself, and so do the keys that the
        engine may have been reading ahead, as each of them may be what ended it. The rest of a piece stays
        together.
        """
        lost = [
            (assignment.piece, [key for key in assignment.left if self._is_orphan(key)])
            for assignment in self._assignments.pop(engine, [])
        ]
        in_work = next((key for _, keys in lost for key in keys), None)
        suspects = 1 + _READ_AHEAD
        for piece, keys in lost:
            singles = [_part(piece, {key}) for key in keys[:suspects]]
            rest = _part(piece, set(keys[suspects:]))
            self._urgent += [part for part in (*singles, rest) if part is not None]
            suspects -= len(singles)
        if in_work is None or self._may_retry(in_work):
            return None
        self._open.remove(in_work)
        return in_work

    def _is_orphan(self, key: Key) -> bool:
        """Tell whether a key is open, and in work nowhere."""
        assigned = (assignment for assignments in self._assignments.values() for assignment in assignments)
        return key in self._open and not any(key in assignment.left for assignment in assigned)


def _part(piece: Piece, keys: set[Key]) -> Piece | None:
    """Return the part of a piece that has these keys, None if it has none of them."""
    if isinstance(piece, FilePiece):
        items = tuple(item for item, key in zip(piece.items, piece.keys, strict=True) if key in keys)
        return FilePiece(items) if items else None
    indexes = tuple(index for index, key in zip(piece.indexes, piece.keys, strict=True) if key in keys)
    return replace(piece, indexes=indexes) if indexes else None
