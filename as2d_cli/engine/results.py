"""Puts together what became of a window, from the steps that decoded it and when they were."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from as2d_cli.decoding import EMPTY, DraftReader
from as2d_cli.decoding.controller import tally
from as2d_cli.decoding.protocols import Target, TargetSession
from as2d_cli.decoding.repetition import has_loop
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import DecodeStats, Request, Step, WindowResult, WindowTrace, Word
from as2d_cli.system.printable import spoken

_TO_THE_AUTHOR = "report this to the plugin's author"


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a window until its last step; moments by `time.perf_counter`."""

    duration_s: float
    """Length of its audio."""
    began: float
    encoded: float
    waited_s: float = 0.0
    """How long the target waited for a drafter, after it had encoded."""


def conclude(
    target: Target, session: TargetSession, request: Request, steps: Sequence[Step], course: Course
) -> WindowResult:
    """Return the result of a window of which the last step has just been taken."""
    tokens = [token for step in steps for token in step.tokens]
    text = [token for token in tokens if token != target.spec.end_id]
    return WindowResult(
        text=spoken(target.tokenizer.decode_bytes(text).decode("utf-8", "ignore")),
        tokens=tuple(tokens),
        language=_language(session),
        words=_words(session, text, course) if request.word_times else (),
        looped=has_loop(text),
        unfinished=len(text) == len(tokens),
        stats=_stats(steps, course),
    )


def _language(session: TargetSession) -> str | None:
    """Return the language that a target tells, which is foreign code. Raises `DecodeError` if it is none."""
    language = session.language
    if language is not None and not isinstance(language, str):
        raise DecodeError(f"the target told {language!r} for a language", _TO_THE_AUTHOR)
    return language


def _words(session: TargetSession, text: Sequence[int], course: Course) -> tuple[Word, ...]:
    """Return the words that have something to show."""
    words = map(_plain, session.words(text, course.duration_s))
    return tuple(word for word in words if word.text)


def _plain(told: Word) -> Word:
    """Return a word as a target tells of it, in plain numbers. Raises `DecodeError` for one at no time."""
    start_s, end_s, sure = float(told.start_s), float(told.end_s), told.probability
    if not (math.isfinite(start_s) and math.isfinite(end_s)):
        raise DecodeError(f"the target told of {told.text!r} at no time", _TO_THE_AUTHOR)
    probability = None if sure is None or not math.isfinite(sure) else float(sure)
    return Word(spoken(told.text), start_s, end_s, probability, tuple(map(int, told.tokens)))


def _stats(steps: Sequence[Step], course: Course) -> DecodeStats:
    ended = time.perf_counter()
    verify_s = sum(step.ms for step in steps) / 1e3
    trials, right = tally(steps)
    return DecodeStats(
        tokens=sum(len(step.tokens) for step in steps),
        steps=len(steps),
        proposed=sum(step.proposed for step in steps),
        accepted=sum(step.accepted for step in steps),
        encode_s=course.encoded - course.began,
        verify_s=verify_s,
        control_s=ended - course.encoded - verify_s - course.waited_s,
        wall_s=ended - course.began,
        trials=trials,
        right=right,
    )


def trace(session: TargetSession, draft: DraftReader, steps: Sequence[Step], began: float) -> WindowTrace:
    """Return the time line of a window that was decoded with `draft`."""
    count = draft.snapshot()
    return WindowTrace(
        began_s=began,
        steps=tuple(steps),
        max_tokens=session.max_tokens,
        draft=tuple(draft.ids(0, count)),
        published_s=tuple(draft.origin_s + ms / 1e3 for ms in draft.times_ms(0, count)),
        draft_began_s=None if draft is EMPTY else draft.begun_s,
    )
