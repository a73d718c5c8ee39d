"""Drafting in another process, in its smallest form: what a spawned worker does for one window."""

from __future__ import annotations

from multiprocessing.shared_memory import SharedMemory

from as2d_cli.decoding.drafting import write_draft
from as2d_cli.decoding.protocols import Drafter, Target
from as2d_cli.decoding.retokenize import Retokenizer
from as2d_cli.decoding.stream import DraftStream
from as2d_cli.domain.types import Features, Request


def draft_into(
    name: str,
    capacity: int,
    epoch: int,
    drafter: Drafter,
    target: Target,
    features: Features,
) -> None:
    """Draft one window into the stream of `capacity` tokens at the start of shared memory `name`."""
    memory = SharedMemory(name)
    stream = DraftStream(memory.buf, capacity)
    try:
        retokenizer = Retokenizer(drafter.tokenizer, target.tokenizer, target.spec.vocab_size)
        draft = drafter.draft(features, Request())
        write_draft(stream.writer(epoch), draft, retokenizer, end_id=target.spec.end_id)
    finally:
        stream.close()
        memory.close()
