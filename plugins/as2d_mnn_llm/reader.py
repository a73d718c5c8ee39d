"""Language models that read a transcript and answer, as targets and as drafters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, cast, get_args

import numpy as np

from as2d_cli.decoding.protocols import END, DrafterSpec, DraftToken, TargetSpec
from as2d_cli.errors import ModelError
from as2d_cli.registry import ModelEntry
from as2d_cli.types import NOTHING_HEARD, Features, Request, TokenIds
from as2d_mnn_llm.bpe import LlmTokenizer
from as2d_mnn_llm.chat import END_OF_TEXT, END_OF_TURN, conversation, fixed_tokens
from as2d_mnn_llm.engine import Engine, Memory
from as2d_mnn_llm.exactness import safe_rows
from as2d_mnn_llm.session import LlmDraftSession, LlmSession

MAX_ANSWER_TOKENS: Final = 512
MAX_PROMPT_TOKENS: Final = 2048
"""Small models are lost in longer texts, and these cost them 2 to 14 ms a token before the first word."""


def memory_of(entry: ModelEntry) -> Memory:
    """Return the option `memory` of a model. Raises `ModelError` for one that does not exist."""
    memory = entry.options.get("memory", "low")
    if memory not in get_args(Memory):
        raise ModelError(f"model {entry.name!r}: memory cannot be {memory!r}", "use low or high")
    return cast(Memory, memory)


class _Model:
    """An engine that keeps the cache of the passage it has read last: what is asked next may be about it."""

    def __init__(self, folder: Path, threads: int, memory: Memory) -> None:
        self.tokenizer = LlmTokenizer.load(folder)
        self.engine = Engine(folder, threads, memory)
        self._passage: tuple[int, ...] = ()

    def read(self, request: Request) -> tuple[tuple[int, ...], int]:
        """Return the prompt for a request, and how much of it is in the cache now: the passage.

        It is always read in one pass, so that the text does not depend on what was asked before.
        """
        told = conversation(self.tokenizer, request)
        length = len(told.passage)
        if told.passage != self._passage or self.engine.length < length:
            self.engine.reset()
            self.engine.prefill(told.passage)
            self._passage = told.passage
        return (*told.passage, *told.question), length


class ReadingTarget:
    """A loaded language model that verifies drafts."""

    def __init__(self, folder: Path, threads: int, memory: Memory) -> None:
        """Load the converted model in `folder`. Raises `ModelError`."""
        self._model = model = _Model(folder, threads, memory)
        self._safe = safe_rows(model.engine, f"{threads} threads, memory {memory}")
        self._ends = tuple(model.tokenizer.special(name) for name in (END_OF_TURN, END_OF_TEXT))
        self.tokenizer = model.tokenizer
        self.spec = TargetSpec(
            features=NOTHING_HEARD,
            end_id=self._ends[0],
            vocab_size=model.tokenizer.size,
            languages=(),
            tasks=("ask",),
            max_passage_tokens=MAX_PROMPT_TOKENS - fixed_tokens(model.tokenizer),
            splits_threads=False,
        )

    def open(self, features: Features, request: Request) -> ReadingSession:
        """Prefill the prompt. Raises `RequestError` if there is no passage or question, `ModelError`."""
        prompt, kept = self._model.read(request)
        return ReadingSession(self._model.engine, prompt, self._safe, kept=kept, ends=self._ends)


class ReadingSession(LlmSession):
    """A session in which every way to end a text counts as the end."""

    def __init__(
        self, engine: Engine, prompt: Sequence[int], safe: Sequence[int], *, kept: int, ends: Sequence[int]
    ) -> None:
        """As `LlmSession`; all of `ends` are read as the first."""
        super().__init__(engine, prompt, MAX_ANSWER_TOKENS, safe, kept=kept)
        self._ends = ends

    def forward(self, tokens: Sequence[int]) -> TokenIds:
        """Append `tokens` and return the greedy next token after each, shape (len(tokens),)."""
        decided = super().forward(tokens)
        return np.where(np.isin(decided, self._ends), np.int32(self._ends[0]), decided)


class ReadingDrafter:
    """A loaded language model that drafts answers from the same request."""

    def __init__(self, folder: Path, threads: int, memory: Memory) -> None:
        """Load the converted model in `folder`. Raises `ModelError`."""
        self._model = model = _Model(folder, threads, memory)
        self._ends = tuple(model.tokenizer.special(name) for name in (END_OF_TURN, END_OF_TEXT))
        self.tokenizer = model.tokenizer
        self.spec = DrafterSpec(features=NOTHING_HEARD, languages=None)

    def open(self, features: Features, request: Request) -> LlmDraftSession:
        """Prefill the prompt. Raises `RequestError` or `ModelError`."""
        prompt, kept = self._model.read(request)
        return LlmDraftSession(self._model.engine, prompt, MAX_ANSWER_TOKENS, self._ends, kept=kept)

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the model's own answer, then `END` if it came to an end."""
        session = self.open(features, request)
        token = DraftToken(session.prompt[-1])
        for _ in range(session.max_tokens):
            token = session.forward([token.id])
            yield token
            if token.id == END:
                return
