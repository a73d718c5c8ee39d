"""What contracts have models listen to or read, and how they say that something is amiss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec, Tokenizer
from as2d_cli.domain.types import (
    NOTHING_HEARD,
    SAMPLE_RATE_HZ,
    WINDOW_S,
    Features,
    FeatureSpec,
    Request,
    Task,
)

_TEXTS = (
    " Hello, world.",
    " it's 12.5 % of Müller's Δx -- naïve",
    " 日本語のテキスト",
    " год и день",
    " \U0001f3a4 ok\n",
    "a",
    "  two  spaces",
    "",
)


class Case(NamedTuple):
    """One window: what is heard, shape as the model's `FeatureSpec`, and what is asked."""

    features: Features
    request: Request


def expect(holds: bool, told: str) -> None:
    """Raise `AssertionError` with `told` unless something holds; unlike `assert`, also under `python -O`."""
    if not holds:
        raise AssertionError(told)


def made_up(spec: TargetSpec | DrafterSpec) -> list[Case]:
    """Return two different windows for a model: noise, or for one that reads passages with a question.

    The first asks for the first language that the model knows, the second for none.
    """
    if spec.features == NOTHING_HEARD:
        nothing = np.zeros(spec.features.shape, np.float32)
        return [
            Case(nothing, Request("ask", question="Where did they meet?", passage="They met in Oslo.")),
            Case(nothing, Request("ask", question="When was it?", passage="It was on a Tuesday in May.")),
        ]
    draw = np.random.default_rng(0)
    noise = [draw.normal(0, 0.5, spec.features.shape).astype(np.float32) for _ in range(2)]
    language = next(iter(("en",) if spec.languages is None else spec.languages), None)
    task: Task = "transcribe" if spec.tasks is None or "transcribe" in spec.tasks else spec.tasks[0]
    asked = Request(task, question="What is said?" if task == "ask" else None)
    return [Case(noise[0], replace(asked, language=language)), Case(noise[1], asked)]


def features_of(path: Path, spec: FeatureSpec) -> Features:
    """Return what a model with this front end hears in the first 30 s of a file. Raises `AudioError`."""
    from as2d_cli.audio.log_mel import log_mel
    from as2d_cli.audio.stream import open_audio  # not at the top: most contracts need no audio

    with open_audio(path) as audio:
        samples = np.concatenate(list(audio.blocks()))
    return log_mel(samples[: int(WINDOW_S * SAMPLE_RATE_HZ)], spec)


def check_tokenizer(tokenizer: Tokenizer) -> None:
    """Check that text comes back whole, also token by token, and that ids say nothing else."""
    expect(isinstance(tokenizer.fingerprint, str), "a tokenizer's fingerprint must be a text")
    for text in _TEXTS:
        ids = tokenizer.encode(text)
        back = tokenizer.decode_bytes(ids)
        expect(back == text.encode(), f"{text!r} comes back from the tokenizer as {back!r}")
        parts = b"".join(tokenizer.decode_bytes([token]) for token in ids)
        expect(parts == back, f"{text!r} comes back token by token as {parts!r}")
