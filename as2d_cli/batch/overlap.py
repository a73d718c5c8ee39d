"""Work that is done side by side, and comes out in order: a store far away takes its while over each file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")


def overlapped(
    pieces: Iterable[_Piece | None],
    do: Callable[[_Piece], _Result],
    keep: Callable[[_Result], None],
    at_once: int,
) -> Generator[_Result, None, None]:
    """Yield what comes of each piece, in their order, while up to `at_once` are in work, each in a thread.

    None among the pieces is a pause: what is finished is yielded. However this ends, what was begun is
    brought to its end. Before a result is yielded it is given to `keep`, in the caller's thread. Raises what
    `do` raises.
    """
    begun: deque[Future[_Result]] = deque()

    def ended() -> _Result:
        result = begun[0].result()  # which may be interrupted: it stays until then
        begun.popleft()
        keep(result)
        return result

    with ThreadPoolExecutor(at_once) as pool:
        try:
            for piece in pieces:
                if piece is not None:
                    begun.append(pool.submit(do, piece))
                while begun and (begun[0].done() or len(begun) >= at_once):
                    yield ended()
            while begun:
                yield ended()
        finally:
            while begun:
                ended()
