"""What a target writes and what a drafter drafts, each by itself and in this process."""

from __future__ import annotations

from as2d_cli.decoding import (
    EMPTY,
    Aligner,
    DraftReader,
    DraftStream,
    FixedBudget,
    Retokenizer,
    decode,
    write_draft,
)
from as2d_cli.decoding.protocols import Drafter, Target, TargetSession
from as2d_cli.domain.types import Features, Request
from as2d_cli.engine.slots import DRAFT_CAPACITY
from as2d_cli.models import loader, weights
from as2d_cli.models.registry import load_registry


def load_pair(target: str, drafter: str, threads: int) -> tuple[Target, Drafter]:
    """Load both models of these names, each on so many threads."""
    registry = load_registry()
    first, second = registry.model(target), registry.model(drafter)
    return (
        loader.load_target(first, weights.ensure(first), threads),
        loader.load_drafter(second, weights.ensure(second), threads),
    )


def tokens_of(target: Target, session: TargetSession) -> list[int]:
    """Decode an opened window without drafts; the end is among its tokens."""
    steps = decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=target.spec.end_id)
    return [int(token) for step in steps for token in step.tokens]


def draft_of(target: Target, drafter: Drafter, features: Features, request: Request) -> DraftReader:
    """Return the whole draft of what the drafter hears, in the target's vocabulary."""
    stream = DraftStream.in_memory(DRAFT_CAPACITY)
    stream.reset(1)
    retokenizer = Retokenizer(drafter.tokenizer, target.tokenizer, target.spec.vocab_size)
    write_draft(stream.writer(1), drafter.draft(features, request), retokenizer, end_id=target.spec.end_id)
    return stream.reader(1, target.spec.vocab_size)
