"""Drafts that were complete before decoding began."""

from __future__ import annotations

from collections.abc import Sequence

from as2d_cli.decoding.stream import DraftReader, DraftState, DraftStream


def finished_draft(ids: Sequence[int], vocab_size: int, final: DraftState = DraftState.ENDED) -> DraftReader:
    """Return a reader of a draft that was complete before decoding began."""
    stream = DraftStream(bytearray(DraftStream.bytes_needed(len(ids))), len(ids))
    stream.reset(1)
    writer = stream.writer(1)
    writer.publish(ids)
    writer.finish(final)
    return stream.reader(1, vocab_size)
