"""The scripted target."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from as2d_cli.plugin import NOTHING_HEARD, DecodeError, Features, FeatureSpec, Request, TargetSpec, Task, Word
from as2d_cli.testing.session import ScriptedSession
from as2d_scripted.script import Script
from as2d_scripted.tokenizer import ScriptedTokenizer

LANGUAGES = ("en", "de", "fr")
_TASKS: tuple[Task, ...] = ("transcribe", "translate", "ask")


@dataclass(frozen=True, slots=True)
class ScriptedTarget:
    """Says its script token by token; windows with equal features get equal texts.

    `step_ms` and `encode_ms` are slept, to give passes and encoding a duration. After
    `fail_at` rows of a window the target raises DecodeError, after `exit_at` its process dies (-1: never).
    Words have times up to the share `heard_to` of a window. One that does not listen reads.
    """

    script: Script = field(default_factory=Script)
    max_tokens: int = 224
    max_prompt_tokens: int = 20
    listens: bool = True
    frames: int = 3000
    max_passage_tokens: int = 400
    step_ms: float = 0.0
    encode_ms: float = 0.0
    heard_to: float = 1.0
    fail_at: int = -1
    exit_at: int = -1
    tokenizer: ScriptedTokenizer = field(default_factory=ScriptedTokenizer)

    @property
    def spec(self) -> TargetSpec:
        """Facts about the model."""
        size = self.tokenizer.size
        specials = 1 + len(LANGUAGES) + len(_TASKS)  # the end id, then the prompt's ids
        return TargetSpec(
            FeatureSpec(n_frames=self.frames) if self.listens else NOTHING_HEARD,
            end_id=size,
            vocab_size=size + specials,
            languages=LANGUAGES if self.listens else (),
            max_prompt_tokens=self.max_prompt_tokens,
            tasks=_TASKS if self.listens else ("ask",),
            max_passage_tokens=0 if self.listens else self.max_passage_tokens,
        )

    def open(self, features: Features, request: Request) -> ScriptedSession:
        """Prepare the window's text, in English by default. Raises `DecodeError` for an unknown language."""
        language = request.language or LANGUAGES[0]
        if language not in LANGUAGES:
            raise DecodeError(f"the scripted target does not know {language!r}", f"it knows {LANGUAGES}")
        time.sleep(self.encode_ms / 1e3)
        spec = self.spec
        text = "".join(f" {word}" for word in self.script.read(features, request))
        prompt = (
            spec.end_id + 1 + LANGUAGES.index(language),
            spec.end_id + 1 + len(LANGUAGES) + _TASKS.index(request.task),
        )
        session = ScriptedSession(
            [*self.tokenizer.encode(text), spec.end_id],
            prompt=prompt,
            vocab_size=spec.vocab_size,
            max_tokens=self.max_tokens,
            cost=_Trouble(self.step_ms, self.fail_at, self.exit_at).step,
            words=self._words,
        )
        session.language = language if self.listens else None
        session.states = features
        return session

    def _words(self, tokens: Sequence[int], duration_s: float) -> tuple[Word, ...]:
        words: list[list[int]] = []
        for token in tokens:
            if not words or self.tokenizer.decode_bytes([token]).startswith(b" "):
                words.append([])
            words[-1].append(token)
        share = self.heard_to * duration_s / max(len(words), 1)
        return tuple(
            Word(self._text(ids), index * share, (index + 1) * share, 1.0, tuple(ids))
            for index, ids in enumerate(words)
        )

    def _text(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode_bytes(tokens).decode("utf-8", "ignore")


class _Trouble:
    """Lets a pass take its time, and everything that the options ask to go wrong go wrong."""

    def __init__(self, step_ms: float, fail_at: int, exit_at: int) -> None:
        self._step_s, self._fail_at, self._exit_at = step_ms / 1e3, fail_at, exit_at
        self._rows = 0

    def step(self, rows: int) -> None:
        self._rows += rows
        if 0 <= self._exit_at < self._rows:
            os._exit(70)
        if 0 <= self._fail_at < self._rows:
            raise DecodeError(f"the scripted target fails after {self._fail_at} rows, as asked")
        time.sleep(self._step_s)
