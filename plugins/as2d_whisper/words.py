"""Word times from cross-attention, after the text is known (openai/whisper `timing.py`, other search).

The attention rows come for free with the decoder passes that wrote the text. Attention alone cannot
tell a pause from the word before it, because Whisper rests on a pause while it waits for the next
word; so the quiet stretches of the audio itself are taken away from the words first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features, Word
from as2d_whisper.tokenizer import WhisperTokenizer

FRAME_S = 0.02
_NO_SPACES = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
_QUIET = 0.3
"""How far from the window's floor to its loudest a frame may be and still count as quiet."""
_RANGE = 0.25
"""Least distance of the two, in units of Whisper's log-mel (40 dB): below it nothing is a pause."""
_SILENT = 0.01
"""Frames this near to the quietest are digital silence, which says nothing of the recording's floor."""
_PAUSE_FRAMES = 8
"""Shorter quiet stretches are closures inside words ("t", "k"), not pauses between them."""
_LEAD_IN_S = 1.0
"""A first word that seems longer has taken in noise or music before it, which is not quiet."""
_CERTAIN = 10.0
"""Score that attention does not reach; its own have mean 0 and deviation 1 over the tokens."""


def levels(features: Features) -> NDArray[np.float32]:
    """Return the loudness of each encoder frame, shape (n_frames / 2,): the mean over the mel bands."""
    level: NDArray[np.float32] = features.mean(axis=0).reshape(-1, 2).mean(axis=1)
    return level


def find_pauses(level: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Mark the quiet stretches, shape as `level`.

    Quiet is meant relative to the window: nearer to its floor (5 % of the frames lie below) than to
    its loudest (2 % above), so it works at any recording level and with steady noise.
    """
    sounding = level[level > level.min() + _SILENT]
    floor, loud = np.percentile(sounding if len(sounding) else level, [5, 98])
    quiet: NDArray[np.bool_] = level < floor + _QUIET * (loud - floor)
    if loud - floor < _RANGE:
        quiet[:] = False
    edges = np.flatnonzero(np.diff(quiet, prepend=False, append=False))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        quiet[start:stop] = stop - start >= _PAUSE_FRAMES
    return quiet


def align(
    attention: NDArray[np.float32], words: Sequence[tuple[int, int]], pauses: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Return first and one-past-last frame of each word, shape (words, 2).

    `attention` has shape (tokens, frames): one row per token, the mean of the alignment heads taken
    when it was decided, and one for the end of the text if there is one. `words` gives first and
    one-past-last token of each; `pauses`, shape (frames,), where no word is.

    Each frame goes to one token, or to the pause before a word, in the order of the text, so that the
    summed score is greatest. A token scores by how much more it attends to a frame than the other
    tokens do, a pause nothing (their mean) except in quiet frames, which it always wins. A word gets a
    frame at least, if there are that many.
    """
    scores = (attention - attention.mean(axis=0)) / (attention.std(axis=0) + 1e-6)
    scores[:, pauses] = -_CERTAIN
    pause = pauses * np.float32(_CERTAIN)
    rows: list[NDArray[np.float32]] = []
    least, starts, stops = [], [], []
    for first, stop in words:
        starts.append(len(rows) + 1)
        rows += [pause, *scores[first:stop]]
        least += [0, 1, *[0] * (stop - first - 1)]
        stops.append(len(rows))
    rows += [pause, *scores[words[-1][1] :]]
    least += [0] * (len(rows) - len(least))
    if len(words) > len(pauses):
        least = [0] * len(rows)
    frames = _share_out(np.array(rows), least)
    return np.stack([frames[starts], frames[stops]], axis=1)


def _share_out(rows: NDArray[np.float32], least: Sequence[int]) -> NDArray[np.intp]:
    """Return the first frame of each row, shape (rows,), for the best monotone cover of all frames.

    Row i gets `least[i]` frames (0 or 1) or more. best_i(t) is the best score of giving frames [0, t)
    to rows 0..i: with prefix sums S_i it is S_i(t) + max over s <= t - least[i] of
    best_(i-1)(s) - S_i(s), a running maximum.
    """
    n_rows, n_frames = rows.shape
    sums = np.zeros((n_rows, n_frames + 1))
    np.cumsum(rows, axis=1, out=sums[:, 1:])
    frames = np.arange(n_frames + 1)
    came_from = np.zeros((n_rows, n_frames + 1), np.intp)
    best = sums[0]
    for row in range(1, n_rows):
        gain = best - sums[row]
        running = np.maximum.accumulate(gain)
        last = np.maximum.accumulate(np.where(gain >= running, frames, 0))
        if least[row]:
            running = np.concatenate([[-np.inf], running[:-1]])
            last = np.concatenate([[0], last[:-1]])
        came_from[row] = last
        best = running + sums[row]
    starts = np.zeros(n_rows, np.intp)
    stop = n_frames
    for row in range(n_rows - 1, 0, -1):
        stop = starts[row] = came_from[row, stop]
    return starts


def split_words(
    tokenizer: WhisperTokenizer, tokens: Sequence[int], language: str
) -> Iterator[tuple[str, int, int]]:
    """Yield (text, first token, one past its last token) of each word; the texts join to the whole.

    A word begins at a token with a leading space, or, in languages written without spaces, at each
    whole character. Punctuation stays with the word before it.
    """
    pieces = [tokenizer.decode_bytes([token]) for token in tokens]
    first, pending = 0, b""
    for index, piece in enumerate(pieces):
        # a space may be a token of its own, where no token joins it with what follows
        ahead = piece if piece.strip() else b"".join(pieces[index : index + 2])
        if _begins_word(pending, ahead, language):
            if text := pending.decode("utf-8", "ignore"):
                yield text, first, index
            first, pending = index, b""
        pending += piece
    if text := pending.decode("utf-8", "ignore"):
        yield text, first, len(pieces)


def _begins_word(before: bytes, ahead: bytes, language: str) -> bool:
    if not before.strip():
        return False
    if ahead.startswith(b" ") and ahead.strip():
        return True
    return language in _NO_SPACES and _is_whole(before) and _is_whole(ahead) and _is_letter(ahead)


def _is_whole(piece: bytes) -> bool:
    try:
        return bool(piece.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _is_letter(piece: bytes) -> bool:
    return piece.decode("utf-8")[0].isalnum()


def words_of(
    tokenizer: WhisperTokenizer,
    tokens: Sequence[int],
    attention: NDArray[np.float32],
    level: NDArray[np.float32],
    *,
    language: str,
    duration_s: float,
) -> tuple[Word, ...]:
    """Return the words of `tokens` with times in [0, duration_s], never going back.

    `attention` has shape (len(tokens) or one more, frames), see `align`; `level` comes from `levels`.
    """
    words = list(split_words(tokenizer, tokens, language))
    if not words:
        return ()
    frames = max(1, min(len(level), round(duration_s / FRAME_S)))
    places = [(first, stop) for _, first, stop in words]
    spans = align(attention[:, :frames], places, find_pauses(level[:frames])) * FRAME_S
    spans[0, 0] = max(spans[0, 0], spans[0, 1] - _LEAD_IN_S)
    return tuple(
        Word(
            text, min(float(start), duration_s), min(float(end), duration_s), tokens=tuple(tokens[first:stop])
        )
        for (text, first, stop), (start, end) in zip(words, spans, strict=True)
    )
