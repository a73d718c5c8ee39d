"""Decode states on the LLM engine: prompts of token ids, greedy decisions, exact whatever rows run together.

An engine has one cache, so a session ends when the next one is opened.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import END, DraftToken, ModelError, TokenIds, Word
from as2d_mnn_llm.engine import Engine


class _Session:
    """A prompt and what follows it in the engine's cache, for as long as no other session is opened."""

    def __init__(self, engine: Engine, prompt: Sequence[int], max_tokens: int, kept: int) -> None:
        """Prefill all but the last token of `prompt`, which has at least one; `kept` are in the cache."""
        self.prompt = tuple(prompt)
        self.max_tokens = max_tokens
        self._engine = engine
        engine.reset(kept)
        if len(self.prompt) - 1 > kept:
            engine.prefill(self.prompt[kept:-1])
        self._turn = engine.turn

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._engine.length

    def rollback(self, length: int) -> None:
        """Keep the first `length` tokens. Raises `ModelError` for a length that is not cached."""
        self._check_turn()
        self._engine.rollback(length)

    def _check_turn(self) -> None:
        if self._engine.turn != self._turn:
            raise ModelError("this session's cache belongs to another session by now")


class LlmSession(_Session):
    """A target's session: `as2d_cli.plugin.TargetSession`.

    A pass of a number of rows that is not among `safe` is filled up with dummies to the next that is, and
    these are rolled back: so a row's decision has the same bits whatever runs with it.
    """

    language: str | None = None

    def __init__(
        self,
        engine: Engine,
        prompt: Sequence[int],
        max_tokens: int,
        safe: Sequence[int],
        *,
        ends: Sequence[int] = (),
        kept: int = 0,
    ) -> None:
        """Prefill all but the last token of `prompt`, which has at least one.

        `safe` are row counts that agree, ascending (`exactness.safe_rows`). All `ends` of a text are decided
        as the first of them. The first `kept` tokens are in the cache already, as another session has left
        them.
        """
        if not prompt or not safe or max_tokens < 1:
            raise ModelError("a session needs a prompt, safe row counts and room for a token")
        super().__init__(engine, prompt, max_tokens, kept)
        self._safe, self._ends = safe, ends

    def forward(self, tokens: Sequence[int]) -> TokenIds:
        """Append `tokens` and return the greedy next token after each, shape (len(tokens),).

        Raises `ModelError` if another session has been opened since.
        """
        self._check_turn()
        largest = self._safe[-1]
        parts = [self._pass(tokens[at : at + largest]) for at in range(0, len(tokens), largest)]
        decided = np.concatenate(parts)
        if not self._ends:
            return decided
        return np.where(np.isin(decided, self._ends), np.int32(self._ends[0]), decided)

    def scores(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Append `tokens`, as many as a pass takes; return the logits after each, (len(tokens), vocab)."""
        self._check_turn()
        self._pass(tokens)
        return self._engine.logits()[: len(tokens)]

    def words(self, tokens: Sequence[int], duration_s: float) -> tuple[Word, ...]:
        """Know no times."""
        return ()

    def _pass(self, tokens: Sequence[int]) -> TokenIds:
        kept = len(tokens)
        rows = self._safe[bisect_left(self._safe, kept)]
        length = self._engine.length
        decided = self._engine.forward([*tokens, *[0] * (rows - kept)])[:kept]
        self._engine.rollback(length + kept)
        return decided


class LlmDraftSession(_Session):
    """A drafter's session: `as2d_cli.plugin.DrafterSession`. It need not be exact."""

    def __init__(
        self,
        engine: Engine,
        prompt: Sequence[int],
        max_tokens: int,
        *,
        ends: Sequence[int] = (),
        kept: int = 0,
    ) -> None:
        """Prefill all but the last token of `prompt`, which has at least one; `kept` are in the cache."""
        if not prompt:
            raise ModelError("a session needs a prompt")
        super().__init__(engine, prompt, max_tokens, kept)
        self._ends = frozenset(ends)

    def forward(self, tokens: Sequence[int]) -> DraftToken:
        """Append `tokens`; return the greedy next token with its probability, `END` for the end.

        Raises `ModelError` if another session has been opened since.
        """
        self._check_turn()
        token = self._engine.prefill(tokens)
        return DraftToken(END if token in self._ends else token, self._engine.probability())

    def written(self) -> Iterator[DraftToken]:
        """Yield what the model writes by itself, up to its end, which is `END`, or to its limit."""
        token = DraftToken(self.prompt[-1])
        for _ in range(self.max_tokens):
            token = self.forward([token.id])
            yield token
            if token.id == END:
                return
