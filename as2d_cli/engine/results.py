"""Puts together what became of a window, from the steps that decoded it and when they were."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from as2d_cli.decoding import EMPTY, DraftReader
from as2d_cli.decoding.controller import tally
from as2d_cli.decoding.protocols import ConfidentSession, Target, TargetSession
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
    logprobs = tuple(logprob for step in steps for logprob in step.logprobs)
    return WindowResult(
        text=spoken(target.tokenizer.decode_bytes(text).decode("utf-8", "ignore")),
        tokens=tuple(tokens),
        language=_language(session),
        words=_words(session, text, logprobs, course) if request.word_times else (),
        looped=has_loop(text),
        unfinished=len(text) == len(tokens),
        stats=_stats(steps, course),
        logprobs=logprobs,
        no_speech_prob=_no_speech_prob(session),
    )


def _language(session: TargetSession) -> str | None:
    """Return the language that a target tells, which is foreign code. Raises `DecodeError` if it is none."""
    language = session.language
    if language is not None and not isinstance(language, str):
        raise DecodeError(f"the target told {language!r} for a language", _TO_THE_AUTHOR)
    return language


def _no_speech_prob(session: TargetSession) -> float | None:
    """Return what a target tells of silence. Raises `DecodeError` if it is no probability."""
    told = session.no_speech_prob if isinstance(session, ConfidentSession) else None
    if told is not None and not 0 <= told <= 1:
        raise DecodeError(f"the target told {told!r} for a probability", _TO_THE_AUTHOR)
    return None if told is None else float(told)


def _words(
    session: TargetSession, text: Sequence[int], logprobs: Sequence[float], course: Course
) -> tuple[Word, ...]:
    """Return the words that have something to show, with the log-probabilities of their tokens."""
    words = map(_plain, session.words(text, course.duration_s))
    return tuple(word for word in _weighed(words, text, logprobs) if word.text)


def _weighed(words: Iterable[Word], text: Sequence[int], logprobs: Sequence[float]) -> Iterator[Word]:
    """Yield `words` with the log-probabilities of their tokens, which are in `text`, in order."""
    at = 0
    for word in words:
        count = len(word.tokens)
        places = range(at, len(text) - count + 1)
        place = next((place for place in places if tuple(text[place : place + count]) == word.tokens), None)
        if not (logprobs and count) or place is None:
            yield word
            continue
        at = place + count
        own = tuple(logprobs[place:at])
        yield replace(word, probability=sum(map(math.exp, own)) / count, logprobs=own)


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
