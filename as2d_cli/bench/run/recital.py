"""A plugin whose models do all the work of others, and recite recorded text and drafts instead of their own.

Random weights decide nonsense, which no drafter could guess. Reciting, a shape takes its own time in the
processes of the engine, over texts and drafts that were real. A request's `question` is the number of the
recorded window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from as2d_cli.bench.acceptance import Acceptance, SpokenWindow, recorded_acceptance
from as2d_cli.decoding.protocols import (
    END,
    DrafterSpec,
    DraftToken,
    SessionDrafter,
    Target,
    TargetSession,
    TargetSpec,
    Tokenizer,
)
from as2d_cli.decoding.replay import RecordedText
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Features, Request, TokenIds, Word
from as2d_cli.models import loader
from as2d_cli.models.hookspecs import hookimpl
from as2d_cli.models.registry import ModelEntry, load_registry
from as2d_cli.models.sources import NoSource

PLUGIN = "recital"
_LANGUAGE = "en"
_acceptance = cache(recorded_acceptance)


def reciting(entry: ModelEntry) -> ModelEntry:
    """Return the entry of what recites with the work of the model `entry`."""
    return ModelEntry(entry.name, PLUGIN, entry.role, NoSource())


def request_of(number: int) -> Request:
    """Return what is asked for the recorded window of this number."""
    return Request(language=_LANGUAGE, question=str(number))


@hookimpl
def as2d_load_target(entry: ModelEntry, path: Path, threads: int, decode_threads: int) -> Target:
    """Load the model to work with. Raises `ModelError` for one whose ids are fewer than the text's."""
    return _RecitingTarget(loader.load_target(_worker(entry), path, threads, decode_threads), _acceptance())


@hookimpl
def as2d_load_drafter(entry: ModelEntry, path: Path, threads: int) -> _RecitingDrafter:
    """Load the model to work with. Raises `ModelError` for one that cannot be told what to go on from."""
    drafter = loader.load_drafter(_worker(entry), path, threads)
    if not isinstance(drafter, SessionDrafter):
        raise ModelError(f"model {entry.name!r} cannot recite: it drafts only texts of its own")
    return _RecitingDrafter(drafter, _acceptance())


@hookimpl
def as2d_load_tokenizer() -> Tokenizer:
    """Return what all that recite have: drafts are recorded in the target's ids."""
    return _Ids()


class _Ids:
    """Stands in for a tokenizer: a recorded text is read as its ids."""

    fingerprint = "recital"

    def encode(self, text: str) -> list[int]:
        """Return the ids written in `text`."""
        return [int(word) for word in text.split()]

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the ids written out."""
        return b"".join(b" %d" % token for token in ids)


def _worker(entry: ModelEntry) -> ModelEntry:
    return load_registry().model(entry.name)


def _recorded(acceptance: Acceptance, request: Request) -> tuple[SpokenWindow, Request]:
    """Return the window that is asked for, and what is asked of the model at work."""
    return acceptance.windows[int(request.question or 0)], replace(request, question=None)


class _RecitingTarget:
    """Opens windows and runs passes of another target; decides as recorded."""

    def __init__(self, worker: Target, acceptance: Acceptance) -> None:
        if worker.spec.vocab_size < acceptance.vocab_size:
            raise ModelError(f"a model of {worker.spec.vocab_size} tokens cannot recite the recorded text")
        self._worker = worker
        self._acceptance = acceptance
        self.tokenizer = _Ids()
        self.spec: TargetSpec = replace(
            worker.spec, end_id=acceptance.end_id, languages=(_LANGUAGE,), tasks=("transcribe",)
        )

    def open(self, features: Features, request: Request) -> TargetSession:
        """Open a window of the model at work."""
        window, asked = _recorded(self._acceptance, request)
        return _RecitingSession(self._worker.open(features, asked), window)


class _RecitingSession:
    """Runs the passes of another session; decides as recorded."""

    language = _LANGUAGE

    def __init__(self, worker: TargetSession, window: SpokenWindow) -> None:
        self._worker = worker
        self._text = RecordedText(window.tokens, worker.prompt[-1])
        self.prompt = worker.prompt
        self.max_tokens = len(window.tokens)

    @property
    def length(self) -> int:
        return self._worker.length

    def forward(self, tokens: Sequence[int]) -> TokenIds:
        self._worker.forward(tokens)
        return np.array([self._text.decide(token) for token in tokens], np.int32)

    def rollback(self, length: int) -> None:
        self._worker.rollback(length)
        self._text.rollback(length - len(self.prompt) + 1)

    def words(self, tokens: Sequence[int], duration_s: float) -> tuple[Word, ...]:
        return ()


class _RecitingDrafter:
    """Opens windows and takes the steps of another drafter; drafts as recorded."""

    def __init__(self, worker: SessionDrafter, acceptance: Acceptance) -> None:
        self._worker = worker
        self._acceptance = acceptance
        self.tokenizer = _Ids()
        self.spec: DrafterSpec = replace(worker.spec, languages=None, tasks=None)

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the recorded draft, each token after a step of the model at work."""
        window, asked = _recorded(self._acceptance, request)
        session = self._worker.open(features, asked)
        for token in window.draft:
            session.forward(session.prompt[-1:])
            yield DraftToken(END if token == self._acceptance.end_id else token)
