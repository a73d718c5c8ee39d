"""A scripted drafter that goes on from any text: it hears on from the first word not yet written right."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from as2d_cli.plugin import END, DecodeError, DraftToken
from as2d_scripted.tokenizer import ScriptedTokenizer

_MAX_TOKENS = 4096


class ScriptedDraftSession:
    """One window's drafter. What it says is a function of the text in its cache and of nothing else.

    After the longest beginning of the script that the text has, it says what it heard of the words
    after that, minus as much as the text has beyond. Raises DecodeError on calls that a real cache
    would punish later.
    """

    max_tokens = _MAX_TOKENS

    def __init__(
        self,
        words: Sequence[str],
        heard: Sequence[Sequence[str]],
        tokenizer: ScriptedTokenizer,
        before: Callable[[int], None],
    ) -> None:
        """Hear `heard[i]` of `words[i]`; `before` is called with the number of every pass."""
        self.prompt = (tokenizer.size,)
        self.passes = 0
        """Calls of `forward` so far."""
        self._words = [f" {word}" for word in words]
        self._heard = [[f" {word}" for word in one] for one in heard]
        self._tokenizer = tokenizer
        self._before = before
        self._cache: list[int] = []

    @property
    def length(self) -> int:
        """Tokens in the cache, prompt included."""
        return len(self._cache)

    def forward(self, tokens: Sequence[int]) -> DraftToken:
        """Append `tokens` and choose the next one."""
        if not tokens or (not self._cache and tokens[0] != self.prompt[0]):
            raise DecodeError("a scripted drafter was asked to go on from nothing")
        if len(self._cache) + len(tokens) > _MAX_TOKENS:
            raise DecodeError(f"{len(tokens)} tokens overflow a scripted drafter's cache")
        self._before(self.passes)
        self.passes += 1
        self._cache += tokens
        ids = self._tokenizer.encode(self._text_after(self._cache[1:]))
        at = len(self._cache) - 1
        return DraftToken(ids[at] if at < len(ids) else END)

    def rollback(self, length: int) -> None:
        """Keep the first `length` tokens of the cache."""
        if not 0 <= length <= len(self._cache):
            raise DecodeError(f"a scripted cache of {len(self._cache)} tokens cannot go back to {length}")
        del self._cache[length:]

    def _text_after(self, ids: Sequence[int]) -> str:
        """Return the right beginning of the text and what is heard after it."""
        text = self._tokenizer.decode_bytes(ids).decode("utf-8", "ignore")
        right, size = 0, 0
        for word in self._words:
            stop = size + len(word)
            if text[size:stop] != word or text[stop : stop + 1] not in {"", " "}:
                break
            right, size = right + 1, stop
        return "".join([*self._words[:right], *itertools.chain(*self._heard[right:])])
