"""Puts the texts of several decodings of one window together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from as2d_cli.decoding.protocols import Target
from as2d_cli.decoding.repetition import has_loop
from as2d_cli.domain.types import Span, WindowResult, Word
from as2d_cli.engine.rescue.stretch import Way, put_at
from as2d_cli.system.printable import spoken


def joined(target: Target, parts: Sequence[tuple[float, WindowResult]], like: WindowResult) -> WindowResult:
    """Return `like` with the texts of `parts`, each with its start in the window, for its own."""
    end = target.spec.end_id
    text = tuple(token for _, part in parts for token in part.tokens if token != end)
    unfinished = any(part.unfinished for _, part in parts)
    tokens = text if unfinished else (*text, end)
    logprobs = _logprobs([part for _, part in parts], like, end)
    return replace(
        like,
        text=spoken(target.tokenizer.decode_bytes(text).decode("utf-8", "ignore")),
        tokens=tokens,
        logprobs=logprobs[: len(tokens)] if len(logprobs) >= len(tokens) else (),
        words=tuple(word for start_s, part in parts for word in _moved(part.words, start_s)),
        looped=any(part.looped for _, part in parts) or has_loop(text),
        unfinished=unfinished,
    )


def _logprobs(parts: Sequence[WindowResult], like: WindowResult, end: int) -> tuple[float, ...]:
    """Return the log-probabilities of all tokens of `parts` and of an end; fewer if some are not known."""
    known = [list(zip(part.tokens, part.logprobs, strict=False)) for part in (*parts, like)]
    text = [logprob for part in known[:-1] for token, logprob in part if token != end]
    ends = [logprob for part in reversed(known) for token, logprob in part if token == end]
    return (*text, *ends[:1])


def replaced(target: Target, whole: WindowResult, place: Span, part: WindowResult) -> WindowResult:
    """Return `whole` with `part` for the words at `place`, within the window."""
    before = [word for word in whole.words if word.end_s <= place.start_s]
    after = [word for word in whole.words if word.start_s >= place.end_s]
    parts = [(0.0, _of_words(before)), (place.start_s, part), (0.0, _of_words(after))]
    return joined(target, parts, whole)


def around(target: Target, new: WindowResult, way: Way, kept: Sequence[Word]) -> WindowResult:
    """Return the text of a stretch, of which `new` was heard in this way and `kept` is written already."""
    if way.kept is None:
        return new
    parts = [(way.heard.start_s, new), (0.0, _of_words(put_at(kept, way.kept)))]
    if way.kept.start_s < way.heard.start_s:
        parts.reverse()
    return joined(target, parts, new)


def words_at(result: WindowResult, place: Span) -> list[Word]:
    """Return the words at `place`, within the window: those that `replaced` would replace."""
    return [word for word in result.words if word.end_s > place.start_s and word.start_s < place.end_s]


def _of_words(words: Sequence[Word]) -> WindowResult:
    tokens = tuple(token for word in words for token in word.tokens)
    logprobs = tuple(logprob for word in words for logprob in word.logprobs)
    return WindowResult("", tokens, None, tuple(words), logprobs=logprobs)


def _moved(words: Sequence[Word], by_s: float) -> list[Word]:
    return [replace(word, start_s=word.start_s + by_s, end_s=word.end_s + by_s) for word in words]
