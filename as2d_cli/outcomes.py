"""Puts together what became of a window, from the steps that decoded it and when they were."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from as2d_cli.decoding import EMPTY, DraftReader
from as2d_cli.decoding.loops import has_loop
from as2d_cli.decoding.protocols import Target, TargetSession
from as2d_cli.printable import spoken
from as2d_cli.types import DecodeStats, Request, Step, WindowResult, WindowTrace, Word


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
        language=session.language,
        words=_words(session, text, course) if request.word_times else (),
        looped=has_loop(text),
        unfinished=len(text) == len(tokens),
        stats=_stats(steps, course),
    )


def _words(session: TargetSession, text: Sequence[int], course: Course) -> tuple[Word, ...]:
    """Return the words that have something to show."""
    words = (replace(word, text=spoken(word.text)) for word in session.words(text, course.duration_s))
    return tuple(word for word in words if word.text)


def _stats(steps: Sequence[Step], course: Course) -> DecodeStats:
    ended = time.perf_counter()
    verify_s = sum(step.ms for step in steps) / 1e3
    return DecodeStats(
        tokens=sum(len(step.tokens) for step in steps),
        steps=len(steps),
        proposed=sum(step.proposed for step in steps),
        accepted=sum(step.accepted for step in steps),
        encode_s=course.encoded - course.began,
        verify_s=verify_s,
        control_s=ended - course.encoded - verify_s - course.waited_s,
        wall_s=ended - course.began,
    )


def trace(session: TargetSession, draft: DraftReader, steps: Sequence[Step], began: float) -> WindowTrace:
    """Return the time line of a window that was decoded with `draft`."""
    count = draft.snapshot()
    shift_s = time.perf_counter() - time.monotonic()  # drafts are timed by the clock that processes share
    begun_s = None if draft is EMPTY else draft.begun_s
    return WindowTrace(
        began_s=began,
        steps=tuple(steps),
        max_tokens=session.max_tokens,
        draft=tuple(draft.ids(0, count)),
        published_s=tuple(shift_s + draft.origin_s + ms / 1e3 for ms in draft.times_ms(0, count)),
        draft_began_s=None if begun_s is None else begun_s + shift_s,
    )
