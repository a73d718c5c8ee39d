"""Language models that read a transcript and answer, as targets and as drafters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, cast, get_args

from as2d_cli.plugin import (
    NOTHING_HEARD,
    DrafterSpec,
    DraftToken,
    Features,
    ModelEntry,
    ModelError,
    Request,
    TargetSpec,
)
from as2d_mnn_llm.bpe import LlmTokenizer
from as2d_mnn_llm.chat import conversation, fixed_tokens, read_form
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
        self.form = read_form(folder)
        self.ends = tuple(map(self.tokenizer.special, (self.form.end, self.form.end_of_text)))
        self.engine = Engine(folder, threads, memory)
        self._passage: tuple[int, ...] = ()

    def read(self, request: Request) -> tuple[tuple[int, ...], int]:
        """Return the prompt for a request, and how much of it is in the cache now: the passage.

        It is always read in one pass, so that the text does not depend on what was asked before.
        """
        told = conversation(self.tokenizer, request, self.form)
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
        load = partial(Engine, folder, threads, memory)
        self._safe = safe_rows(load, folder, f"{threads} threads, memory {memory}")
        self._model = model = _Model(folder, threads, memory)
        self.tokenizer = model.tokenizer
        self.spec = TargetSpec(
            features=NOTHING_HEARD,
            end_id=model.ends[0],
            vocab_size=model.tokenizer.size,
            languages=(),
            tasks=("ask",),
            max_passage_tokens=MAX_PROMPT_TOKENS - fixed_tokens(model.tokenizer, model.form),
            splits_threads=False,
        )

    def open(self, features: Features, request: Request) -> LlmSession:
        """Prefill the prompt. Raises `RequestError` if there is no passage or question, `ModelError`."""
        model = self._model
        prompt, kept = model.read(request)
        return LlmSession(model.engine, prompt, MAX_ANSWER_TOKENS, self._safe, ends=model.ends, kept=kept)


class ReadingDrafter:
    """A loaded language model that drafts answers from the same request."""

    def __init__(self, folder: Path, threads: int, memory: Memory) -> None:
        """Load the converted model in `folder`. Raises `ModelError`."""
        self._model = model = _Model(folder, threads, memory)
        self.tokenizer = model.tokenizer
        self.spec = DrafterSpec(features=NOTHING_HEARD, languages=None)

    def open(self, features: Features, request: Request) -> LlmDraftSession:
        """Prefill the prompt. Raises `RequestError` or `ModelError`."""
        model = self._model
        prompt, kept = model.read(request)
        return LlmDraftSession(model.engine, prompt, MAX_ANSWER_TOKENS, ends=model.ends, kept=kept)

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the model's own answer, then `END` if it came to an end."""
        yield from self.open(features, request).written()
