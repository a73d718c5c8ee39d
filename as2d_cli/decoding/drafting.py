"""The drafter's side: runs a draft into its stream until it ends, fails or is no longer wanted."""

from __future__ import annotations

from collections.abc import Iterator

from as2d_cli.decoding.protocols import END, DraftToken
from as2d_cli.decoding.repetition import LoopDetector
from as2d_cli.decoding.retokenize import Retokenizer
from as2d_cli.decoding.stream import DraftState, DraftWriter


def write_draft(
    writer: DraftWriter, draft: Iterator[DraftToken], retokenizer: Retokenizer, *, end_id: int
) -> DraftState:
    """Publish `draft` in the target's vocabulary and return how it ended.

    The drafter's own end is published as the target's `end_id`, a candidate like any other. An exception
    of the drafter marks the stream FAILED and passes through; the drafter's iterator is always closed.
    """
    state = DraftState.FAILED
    try:
        state = _run(writer, draft, retokenizer, end_id)
    finally:
        writer.finish(state)
        close = getattr(draft, "close", None)
        if close is not None:
            close()
    return state


def _run(
    writer: DraftWriter, draft: Iterator[DraftToken], retokenizer: Retokenizer, end_id: int
) -> DraftState:
    detector = LoopDetector()
    for token in draft:
        if writer.cancelled:
            return DraftState.CANCELLED
        if token.id == END:
            fitted = writer.publish(tail := [*retokenizer.flush(), end_id])
            return DraftState.ENDED if fitted == len(tail) else DraftState.CAPPED
        if ids := retokenizer.feed([token.id]):
            writer.publish(ids)
        if writer.full:
            return DraftState.CAPPED
        if detector.push(token.id):
            return DraftState.LOOPED
    writer.publish(retokenizer.flush())
    return DraftState.CAPPED
