"""Decodes doubtful windows again, and takes the better text.

The rule and what it was measured on: docs/decisions/0017-rescue.md. Second decodings are plain, so nothing
here depends on drafts, threads or the number of engines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.audio.vad import SpeechDetector
from as2d_cli.audio.windows import quietest_place
from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, decode
from as2d_cli.decoding.protocols import CarefulTarget, ScoringSession, Target, TargetSession
from as2d_cli.domain.types import SAMPLE_RATE_HZ, Features, Request, Samples, Span, WindowResult, Word
from as2d_cli.engine.rescue.care import Care
from as2d_cli.engine.rescue.coverage import uncovered
from as2d_cli.engine.rescue.likelihood import mean_log_probability
from as2d_cli.engine.rescue.stretch import WORD_S, Way, says_more, ways
from as2d_cli.engine.rescue.texts import around, joined, replaced, words_at
from as2d_cli.engine.results import Course, conclude

LEAST_SURE = -0.6
"""Mean log probability of a stretch's tokens. Of lost sentences it was above -0.5, of guesses at noise, at
two voices at once and at parts of words below -0.7."""
DEPTH = 3
"""How often the text of a stretch may be completed, or a looping window cut in two."""
SHORTEST_S = 4.0
"""Shorter windows are not cut: a model does badly on a second without context."""


class Rescuer:
    """Looks after the texts of one target's windows."""

    def __init__(self, target: Target) -> None:
        """Nothing is loaded before the first window in doubt."""
        self._target = target
        self._spares = isinstance(target, CarefulTarget)
        self._speech = SpeechDetector()

    def looked_after(
        self, first: WindowResult, samples: Samples, request: Request, care: Care
    ) -> WindowResult:
        """Return the better text of a window whose first decoding, of `request`, gave `first`.

        That has words if the request asks for them and the target can tell their times. Raises `ModelError`
        if the speech detector cannot be loaded, and what the target raises.
        """
        began = time.perf_counter()
        request, result = replace(request, language=first.language or request.language), first
        listens = care.listens and request.in_language(request.language).task == "transcribe"
        if care.rescues and self._spares and self._is_doubtful(result, samples, listens=listens):
            result = self.decoded(samples, request)
        if care.rescues and (result.looped or result.unfinished):
            result = self._without_loops(result, samples, request, DEPTH)
        if care.rescues and listens:
            result = self._completed(result, samples, request, DEPTH)
        left_out = self._left_out(result, samples) if listens else ()
        took_s = time.perf_counter() - began
        is_other = result.tokens != first.tokens
        stats = replace(first.stats, rescue_s=took_s if care.rescues else 0.0)
        return replace(result, left_out=left_out, rescued=is_other, stats=stats)

    def _is_doubtful(self, result: WindowResult, samples: Samples, *, listens: bool) -> bool:
        """Tell whether a text may be wrong: a full decoding costs more than looking for this."""
        return result.looped or result.unfinished or (listens and any(self._places(result, samples)))

    def _left_out(self, result: WindowResult, samples: Samples) -> tuple[Span, ...]:
        """Return where somebody speaks and no word is written, seconds within the window."""
        if result.looped or result.unfinished or (result.text and not result.words):  # times are not known
            return ()
        return self._speech.left_out(samples, result.words)

    def _completed(
        self, result: WindowResult, samples: Samples, request: Request, depth: int
    ) -> WindowResult:
        """Return a text that has what is said where there are no words: stretches decoded by themselves."""
        for place in self._places(result, samples) if depth else ():
            part, kept = _between(samples, place), words_at(result, place)
            untried = [way for way in ways(part, len(kept)) if way.kept or len(part) < len(samples)]
            again = self._stretch(part, kept, untried, request, depth)
            if again is not None:
                result = replaced(self._target, result, place, again)
        return result

    def _stretch(
        self, part: Samples, kept: Sequence[Word], untried: Sequence[Way], request: Request, depth: int
    ) -> WindowResult | None:
        """Return the text of a stretch with most words, None if none says more than those already written."""
        best, most = None, len(kept)
        for way in untried:
            new = self._sound(_between(part, way.heard), request)
            count = 0 if new is None else len(new.words) + (len(kept) if way.kept else 0)
            if new is not None and count > most and says_more(new.words, kept, way):
                best, most = (way, new), count
        if best is None:
            return None
        way, new = best
        new = self._completed(new, _between(part, way.heard), request, depth - 1)
        return around(self._target, new, way, kept)

    def _sound(self, part: Samples, request: Request) -> WindowResult | None:
        """Return the text of a part, None if that is no better than none: a loop, or a guess."""
        result, session = self._written(part, request)
        if result.looped or result.unfinished:
            return None
        is_guess = (
            isinstance(session, ScoringSession) and mean_log_probability(session, result.tokens) < LEAST_SURE
        )
        return None if is_guess else result

    def _places(self, result: WindowResult, samples: Samples) -> Iterator[Span]:
        """Yield where somebody says more than is written, if the times of words are known."""
        if result.text and not result.words:
            return
        for place in uncovered(result.words, len(samples) / SAMPLE_RATE_HZ):
            if self._may_say_more(_between(samples, place), has_words=bool(words_at(result, place))):
                yield place

    def _may_say_more(self, part: Samples, *, has_words: bool) -> bool:
        """Tell whether somebody speaks in a stretch besides the word, at either end, that was stretched."""
        word = int(WORD_S * SAMPLE_RATE_HZ) if has_words else 0
        return all(self._speech.hears_speech(rest) for rest in (part[word:], part[: len(part) - word]))

    def _without_loops(
        self, result: WindowResult, samples: Samples, request: Request, depth: int
    ) -> WindowResult:
        """Return a text without loops if there is one: without the prompt, or of the window cut in two."""
        if request.prompt is not None:
            request = replace(request, prompt=None)
            again = self.decoded(samples, request)
            if not (again.looped or again.unfinished):
                return again
        if not depth or len(samples) < SHORTEST_S * SAMPLE_RATE_HZ:
            return result
        place = quietest_place(samples, len(samples) // 4, 3 * len(samples) // 4)
        parts = []
        for start, half in ((0, samples[:place]), (place, samples[place:])):
            part = self.decoded(half, request)
            if part.looped or part.unfinished:
                part = self._without_loops(part, half, request, depth - 1)
            if part.looped or part.unfinished:
                return result
            parts.append((start / SAMPLE_RATE_HZ, part))
        again = joined(self._target, parts, result)
        return result if again.looped else again

    def decoded(self, samples: Samples, request: Request) -> WindowResult:
        """Decode a window or a part of one, without drafts."""
        return self._written(samples, request)[0]

    def _written(self, samples: Samples, request: Request) -> tuple[WindowResult, TargetSession]:
        """As `decoded`, with the session that it was written in."""
        spec = self._target.spec
        began = time.perf_counter()
        session = opened(self._target, log_mel(samples, spec.features), request, carefully=True)
        course = Course(len(samples) / SAMPLE_RATE_HZ, began, time.perf_counter())
        steps = list(decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=spec.end_id))
        return conclude(self._target, session, request, steps, course), session


def opened(target: Target, features: Features, request: Request, *, carefully: bool) -> TargetSession:
    """Open a window, carefully where its text is in doubt or nobody will look after it."""
    session = None
    if carefully and isinstance(target, CarefulTarget):
        session = target.open_carefully(features, request)
    return target.open(features, request) if session is None else session


def _between(samples: Samples, place: Span) -> Samples:
    return samples[round(place.start_s * SAMPLE_RATE_HZ) : round(place.end_s * SAMPLE_RATE_HZ)]
