"""A drafter that goes on from the target's own text, which the serial and coupled baselines need.

Vocabularies may differ: the target's text is encoded anew for the drafter, and what the drafter
writes is turned back as in any draft. A wrong conversion costs acceptance, never text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from as2d_cli.decoding.protocols import END, DrafterSession, DraftToken, Tokenizer
from as2d_cli.decoding.retokenize import Retokenizer

_MAX_HELD = 16
"""Drafter tokens after which text without a word border is given out as it is."""


class CoupledDrafter(Protocol):
    """Continues any text. Tokens in and out are the target's."""

    @property
    def passes(self) -> int:
        """Drafter passes so far."""

    def sync(self, tokens: Sequence[int]) -> None:
        """Go on after exactly the text `tokens`, the whole of it, from now on."""

    def step(self) -> DraftToken | None:
        """Return the next token, `END` at the drafter's own end; None when its context is full."""


class Coupling:
    """Makes a `CoupledDrafter` of a drafter's session.

    The drafter's choices are kept while the target's text agrees with them: syncing with a text that
    the drafter has already written rolls nothing back, and `step` then gives its choices again
    without a pass. Anything else costs one pass with all missing tokens.
    """

    def __init__(
        self, session: DrafterSession, drafter: Tokenizer, target: Tokenizer, vocab_size: int
    ) -> None:
        """Convert between the two tokenizers; the target has `vocab_size` ids."""
        self.passes = 0
        self._session = session
        self._drafter, self._target, self._vocab_size = drafter, target, vocab_size
        self._history: list[DraftToken] = []  # after the prompt; the last one is never in the cache
        self.sync(())

    def sync(self, tokens: Sequence[int]) -> None:
        """Roll back to where `tokens` and the drafter's own history part."""
        wanted = self._translate(tokens)
        common = 0
        while common < min(len(wanted), len(self._history)) and self._history[common].id == wanted[common]:
            common += 1
        if common < len(wanted):
            self._history[common:] = [DraftToken(token) for token in wanted[common:]]
            self._session.rollback(min(self._session.length, len(self._session.prompt) + common))
        self._next = len(wanted)
        self._ready: deque[DraftToken] = deque()
        self._retokenizer = Retokenizer(self._drafter, self._target, self._vocab_size)
        self._held = 0
        self._doubt = 1.0

    def step(self) -> DraftToken | None:
        """Let the drafter write until one more token is certain in the target's vocabulary."""
        while not self._ready:
            token = self._choice()
            if token is None:
                self._release(self._retokenizer.flush())
                return self._ready.popleft() if self._ready else None
            self._doubt = min(self._doubt, token.probability)
            if token.id == END:
                self._release(self._retokenizer.flush())
                self._ready.append(token)
                break
            self._held += 1
            self._release(self._retokenizer.feed([token.id]))
            if self._held >= _MAX_HELD:
                self._release(self._retokenizer.flush())
        return self._ready.popleft()

    def _choice(self) -> DraftToken | None:
        """Return the drafter's next own token, by a pass only if it is not known yet."""
        if self._next == len(self._history):
            if len(self._history) >= self._session.max_tokens or self._has_ended:
                return None
            text = [*self._session.prompt, *(token.id for token in self._history)]
            self._history.append(self._session.forward(text[self._session.length :]))
            self.passes += 1
        self._next += 1
        return self._history[self._next - 1]

    @property
    def _has_ended(self) -> bool:
        return bool(self._history) and self._history[-1].id == END

    def _release(self, ids: Sequence[int]) -> None:
        """Give out `ids`, each as doubtful as the least certain drafter token behind them."""
        if ids:
            self._ready.extend(DraftToken(token, self._doubt) for token in ids)
            self._held, self._doubt = 0, 1.0

    def _translate(self, tokens: Sequence[int]) -> list[int]:
        if self._drafter.fingerprint == self._target.fingerprint:
            return [token for token in tokens if self._target.decode_bytes([token])]
        # A character that the target has written in part is left out: the drafter starts before it.
        text = self._target.decode_bytes(tokens).decode("utf-8", "ignore")
        return self._drafter.encode(text) if text else []
