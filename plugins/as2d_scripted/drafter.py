"""The scripted drafter: hears what the target hears, but not quite, and can go wrong in every way."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from as2d_cli.plugin import (
    END,
    NOTHING_HEARD,
    DecodeError,
    DrafterSpec,
    DraftToken,
    Features,
    FeatureSpec,
    Request,
)
from as2d_scripted.draft_session import ScriptedDraftSession
from as2d_scripted.script import Script, mishear
from as2d_scripted.tokenizer import ScriptedTokenizer

_LOOP_WORDS = 5


@dataclass(frozen=True, slots=True)
class ScriptedDrafter:
    """Drafts the script with errors. Give it the target's script options.

    `error_rate` is the share of words misheard, by `noise_seed`. From word `loop_at` on it repeats
    five words without end; it leaves out `omit_words` words from `omit_at` on. It sleeps
    `start_delay_ms` before the first token and `delay_ms` before each. Before token `fail_at` it
    raises DecodeError, before token `exit_at` its process dies (-1: never). One that does not listen reads,
    one that does hears `frames` of 10 ms.
    With `inner` it runs in the target's process (see `ScriptedInnerDrafter`).
    """

    script: Script = field(default_factory=Script)
    error_rate: float = 0.0
    noise_seed: int = 0
    loop_at: int = -1
    omit_at: int = 0
    omit_words: int = 0
    start_delay_ms: float = 0.0
    delay_ms: float = 0.0
    listens: bool = True
    frames: int = 3000
    fail_at: int = -1
    exit_at: int = -1
    inner: bool = False
    tokenizer: ScriptedTokenizer = field(default_factory=ScriptedTokenizer)

    @property
    def spec(self) -> DrafterSpec:
        """Facts about the model."""
        return DrafterSpec(
            FeatureSpec(n_frames=self.frames) if self.listens else NOTHING_HEARD, languages=None
        )

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the draft of one window."""
        time.sleep(self.start_delay_ms / 1e3)
        for index, token in enumerate(self._tokens(self.script.read(features, request))):
            self._suffer(index)
            yield DraftToken(token)
        yield DraftToken(END)

    def open(self, features: Features, request: Request) -> ScriptedDraftSession:
        """Prepare a window that can be continued from any text. It never loops."""
        time.sleep(self.start_delay_ms / 1e3)
        words = self.script.read(features, request)
        omitted = range(self.omit_at, self.omit_at + self.omit_words)
        heard = [
            [] if index in omitted else one
            for index, one in enumerate(mishear(words, self.error_rate, self.noise_seed))
        ]
        return ScriptedDraftSession(words, heard, self.tokenizer, self._suffer)

    def _suffer(self, index: int) -> None:
        """Let time pass before token `index`, or let what was asked for go wrong."""
        if index == self.exit_at:
            os._exit(70)
        if index == self.fail_at:
            raise DecodeError(f"the scripted drafter fails before token {index}, as asked")
        time.sleep(self.delay_ms / 1e3)

    def _tokens(self, words: list[str]) -> Iterator[int]:
        heard = list(itertools.chain(*mishear(words, self.error_rate, self.noise_seed)))
        del heard[self.omit_at : self.omit_at + self.omit_words]
        spoken: Iterator[str] = iter(heard)
        if self.loop_at >= 0:
            looped = heard[self.loop_at : self.loop_at + _LOOP_WORDS]
            spoken = itertools.chain(heard[: self.loop_at], itertools.cycle(looped))
        for word in spoken:
            yield from self.tokenizer.encode(f" {word}")
