"""The scripted decode state: a list of tokens in place of a KV cache."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from as2d_cli.decoding.inner import States
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import TokenIds, Word


def _no_cost(rows: int) -> None:
    """Cost nothing."""


def _no_words(tokens: Sequence[int], duration_s: float) -> tuple[Word, ...]:
    """Know no words."""
    return ()


class ScriptedSession:
    """Decides the script's next token after exactly the prompt and the script so far, else a hash.

    So each decision depends on every token in the cache: one too many, one missing or one wrong
    changes the text. `cost` is called with the number of rows of every pass, to let time pass.
    Raises DecodeError on every call that a real cache would punish later.
    """

    def __init__(
        self,
        script: Sequence[int],
        *,
        prompt: Sequence[int],
        vocab_size: int,
        max_tokens: int,
        cost: Callable[[int], None] = _no_cost,
        words: Callable[[Sequence[int], float], tuple[Word, ...]] = _no_words,
    ) -> None:
        self.prompt = tuple(prompt)
        self.max_tokens = max_tokens
        self.language: str | None = None
        self.states: States = np.empty((0, 0), np.float32)
        """What inner drafters may see of the window."""
        self.passes = 0
        """Calls of `forward` so far."""
        self.no_speech_prob: float | None = None
        self._told = np.zeros(0, np.float32)  # log-probabilities of the last pass
        self._text = [*self.prompt, *script]
        self._cache = list(self.prompt[:-1])
        self._matching = len(self._cache)  # leading tokens of the cache that equal prompt + script
        self._vocab_size = vocab_size
        self._cost = cost
        self._words = words

    @property
    def length(self) -> int:
        """Tokens in the cache, prompt included."""
        return len(self._cache)

    @property
    def cached(self) -> tuple[int, ...]:
        """Copy of what is in the cache."""
        return tuple(self._cache)

    def forward(self, tokens: Sequence[int]) -> TokenIds:
        """Append `tokens` and decide after each."""
        if not tokens:
            raise DecodeError("a scripted target was asked for no rows")
        unknown = [token for token in tokens if not 0 <= token < self._vocab_size]
        if unknown:
            raise DecodeError(f"a scripted target has no id {unknown[0]}")
        if len(self._cache) + len(tokens) > len(self.prompt) - 1 + self.max_tokens:
            raise DecodeError(f"{len(tokens)} rows on top of {len(self._cache)} overflow a scripted cache")
        self.passes += 1
        self._cost(len(tokens))
        decided = [self._decide(token) for token in tokens]
        self._told = np.array([logprob for _, logprob in decided], np.float32)
        return np.array([token for token, _ in decided], dtype=np.int32)

    def logprobs(self, rows: int) -> NDArray[np.float32]:
        """Return log-probabilities, made up of the whole cache, of the last pass's first `rows` decisions."""
        return self._told[:rows]

    def rollback(self, length: int) -> None:
        """Keep the first `length` tokens of the cache."""
        if not len(self.prompt) - 1 <= length <= len(self._cache):
            raise DecodeError(f"a scripted cache of {len(self._cache)} tokens cannot go back to {length}")
        del self._cache[length:]
        self._matching = min(self._matching, length)

    def words(self, tokens: Sequence[int], duration_s: float) -> tuple[Word, ...]:
        """Return the words of committed `tokens`: the cached ones, and perhaps one that is not yet."""
        cached = self._cache[len(self.prompt) :][: len(tokens)]
        if cached != list(tokens[: len(cached)]) or len(cached) < len(tokens) - 1:
            raise DecodeError("words were asked for tokens that are not in the scripted cache")
        return self._words(tokens, duration_s)

    def _decide(self, token: int) -> tuple[int, float]:
        """Return the decision after `token` with its log-probability."""
        index = len(self._cache)
        self._cache.append(token)
        mixed = zlib.crc32(np.array(self._cache, dtype=np.int32).tobytes())
        logprob = -(mixed % 1000) / 500
        if self._matching == index < len(self._text) and self._text[index] == token:
            self._matching += 1
            if self._matching < len(self._text):
                return self._text[self._matching], logprob
        return mixed % self._vocab_size, logprob
