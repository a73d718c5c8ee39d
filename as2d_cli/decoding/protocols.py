"""What the decoding core asks of a target, a drafter and a tokenizer. Plugins implement these.

Errors: `RequestError` for what a model cannot be asked, `ModelError` or `DecodeError` for what goes wrong. A
target's cost the window, or the run where none can be decoded; a drafter's, whatever they are, its draft.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.types import Features, FeatureSpec, Request, Task, TokenIds, Word

END = -1
"""Id of the last `DraftToken` of a drafter that ended its text by itself."""


@dataclass(frozen=True, slots=True)
class DraftToken:
    """One token of a draft in the drafter's own vocabulary; `END` closes a complete draft."""

    id: int
    """In the drafter's own vocabulary, or `END`."""
    probability: float = 1.0
    """How sure the drafter is of it, 0 to 1; it may be left out."""


class Tokenizer(Protocol):
    """Text <-> ids of ordinary text tokens; special tokens never pass through it."""

    @property
    def fingerprint(self) -> str:
        """Equal for two tokenizers exactly when they give every text the same ids."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`; no special tokens are added or recognised."""

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the UTF-8 bytes of `ids`, which may end inside a character; special ids give b''."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """What the rest of the tool needs to know of a loaded target."""

    features: FeatureSpec
    end_id: int
    """The id that ends a text."""
    vocab_size: int
    """Number of ids, special ones included."""
    languages: tuple[str, ...]
    """Language codes the target can be asked for; none: it takes no language."""
    max_prompt_tokens: int = 0
    """Tokens of " " and the prompt that a request may hold; 0: the model takes no prompt."""
    tasks: tuple[Task, ...] = ("transcribe", "translate")
    """What the target can be asked to do."""
    translates_to: tuple[str, ...] = ("en",)
    """Codes of the languages it can be asked to translate to, if that is among its tasks."""
    max_passage_tokens: int = 0
    """Tokens of the passage and the question that a request may hold; 0: the model listens."""
    splits_threads: bool = True
    """Whether its passes can run on fewer threads than its encoder and prompt do."""


@dataclass(frozen=True, slots=True)
class DrafterSpec:
    """What the rest of the tool needs to know of a loaded drafter."""

    features: FeatureSpec
    """What `draft` is given of the audio; `n_frames` must cover a window of 30 s, or be 0."""
    languages: tuple[str, ...] | None
    """Languages it drafts usefully; None means any."""
    tasks: tuple[Task, ...] | None = None
    """What it can draft; None means anything."""
    translates_to: tuple[str, ...] = ("en",)
    """Codes of the languages it can draft translations in."""


class DecodeState(Protocol):
    """One window's decode state: the KV cache and the tokens in it.

    The contract that makes speculation lossless: what `forward` decides after a token depends on
    the tokens before it in the session and on nothing else, not on how many rows ran together.
    """

    @property
    def prompt(self) -> tuple[int, ...]:
        """Prompt ids. All but the last are in the cache when the session opens."""

    @property
    def length(self) -> int:
        """Tokens whose keys and values are in the cache, prompt included."""

    @property
    def max_tokens(self) -> int:
        """Most tokens that may be committed after the prompt, the end token included."""

    def forward(self, tokens: Sequence[int]) -> TokenIds:
        """Append `tokens` (at least one, and no more than the cache has room for) to the cache.

        Returns the greedy next token after each, shape (len(tokens),), with the model's
        suppression rules applied for the prefix that each row sees.
        """

    def rollback(self, length: int) -> None:
        """Drop all but the first `length` tokens of the cache; an absolute length, never a count.

        Never into the prompt. To the length that there is, it does nothing.
        """


class TargetSession(DecodeState, Protocol):
    """A window's decode state with what is known of it besides its tokens."""

    @property
    def language(self) -> str | None:
        """Language asked for or detected."""

    def words(self, tokens: Sequence[int], duration_s: float) -> tuple[Word, ...]:
        """Return the words of committed text `tokens` with times within the window, seconds; () if unknown.

        Asked for only if the request has `word_times`, of a window `duration_s` seconds long.
        All are in the cache, but perhaps the last: that of a window that reached `max_tokens`.
        """


@runtime_checkable
class ConfidentSession(TargetSession, Protocol):
    """A session that tells how probable its tokens were. Texts of others have no figures of confidence."""

    @property
    def no_speech_prob(self) -> float | None:
        """Probability that nobody speaks in the window, 0 to 1; None if the model does not tell."""

    def logprobs(self, rows: int) -> NDArray[np.float32]:
        """Return the log-probabilities of what the last `forward` decided after its first `rows` tokens.

        Shape (rows,), each 0 or less; asked for before the next `forward` or `rollback`. The distribution is
        that which the token was chosen from: with the suppression rules applied, as in openai/whisper's
        `GreedyDecoder.update`. The same bits whatever rows ran together.
        """


@runtime_checkable
class ScoringSession(TargetSession, Protocol):
    """A session that can tell logits, which only measuring asks for."""

    def scores(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Append up to 24 `tokens` as `forward` does; return the logits after each, (len(tokens), vocab)."""


class Target(Protocol):
    """A loaded target model."""

    @property
    def spec(self) -> TargetSpec:
        """Facts about the model."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The target's tokenizer."""

    def open(self, features: Features, request: Request) -> TargetSession:
        """Encode one window, detect the language if the request leaves it open, prefill the prompt.

        `features` are log-mel of shape `spec.features.shape`, scaled as Whisper's. A session may end when
        the next is opened, and then raises an `As2dError` rather than go on wrongly.
        """


@runtime_checkable
class CarefulTarget(Target, Protocol):
    """A target whose `open` takes less time over some windows than would be safe without a second look."""

    def open_carefully(self, features: Features, request: Request) -> TargetSession | None:
        """Open a window whose text is in doubt; None where `open` spares nothing.

        It is what `open` would be without any savings: texts that nobody looks after are made by it, too.
        """


class Drafter(Protocol):
    """A loaded drafter. It sees the audio and the request, never the target's text."""

    @property
    def spec(self) -> DrafterSpec:
        """Facts about the drafter."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The drafter's tokenizer."""

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the draft of one window token by token; closing the iterator cancels it.

        `features` are log-mel of shape `spec.features.shape`, scaled as Whisper's. Yield each token as soon
        as it is known: the target verifies those that are there when it begins a pass. `END` says that the
        text ends; a draft may as well just stop. One window at a time.
        """


class DrafterSession(Protocol):
    """One window's state of a drafter that can be told what to go on from, in its own vocabulary.

    Only coupled baselines need it: a target-decoupled draft never depends on the target's text.
    """

    @property
    def prompt(self) -> tuple[int, ...]:
        """Prompt ids. All but the last are in the cache when the session opens."""

    @property
    def length(self) -> int:
        """Tokens in the cache, prompt included."""

    @property
    def max_tokens(self) -> int:
        """Most tokens that may follow the prompt."""

    def forward(self, tokens: Sequence[int]) -> DraftToken:
        """Append `tokens` (at least one) to the cache; return the greedy next token, `END` for the end."""

    def rollback(self, length: int) -> None:
        """Drop all but the first `length` tokens of the cache."""


@runtime_checkable
class SessionDrafter(Drafter, Protocol):
    """A drafter that coupled baselines can run with."""

    def open(self, features: Features, request: Request) -> DrafterSession:
        """Encode one window and prefill the prompt."""
