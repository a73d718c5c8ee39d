"""Word times from cross-attention, after the text is known (openai/whisper `timing.py`, other search).

The attention rows come for free with the decoder passes that wrote the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from as2d_cli.types import Word
from as2d_whisper.tokenizer import WhisperTokenizer

FRAME_S = 0.02
_MEDIAN_FRAMES = 7
_NO_SPACES = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
_GAP_SCORE = 0.1
"""What a frame must at least be worth to a token: below it, it counts as pause between words.
Scores have mean 0 and deviation 1 over the tokens."""


def align(attention: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return first and one-past-last frame of each token, shape (tokens, 2).

    `attention` has shape (tokens, heads, frames). Frames are shared out monotonically among tokens
    and the pauses before each, so that the summed score is greatest.
    """
    centred = attention - attention.mean(axis=0, keepdims=True)
    scores = _median_filter(centred / (attention.std(axis=0, keepdims=True) + 1e-6)).mean(axis=1)
    rows = np.full((2 * len(scores) + 1, scores.shape[1]), _GAP_SCORE)
    rows[1::2] = scores
    starts = _share_out(rows)
    return np.stack([starts[1:-1:2], starts[2::2]], axis=1)


def _median_filter(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    half = _MEDIAN_FRAMES // 2
    padded = np.pad(scores, [(0, 0), (0, 0), (half, half)], mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, _MEDIAN_FRAMES, axis=-1)
    median: NDArray[np.float32] = np.median(windows, axis=-1)
    return median


def _share_out(rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the first frame of each row, shape (rows,), for the best monotone cover of all frames.

    best_i(t) is the best score of giving frames [0, t) to rows 0..i: with prefix sums S_i it is
    S_i(t) + max over s <= t of best_(i-1)(s) - S_i(s), a running maximum.
    """
    n_rows, n_frames = rows.shape
    sums = np.concatenate([np.zeros((n_rows, 1)), np.cumsum(rows, axis=1)], axis=1)
    frames = np.arange(n_frames + 1)
    came_from = np.zeros((n_rows, n_frames + 1), np.intp)
    best = sums[0]
    for row in range(1, n_rows):
        gain = best - sums[row]
        running = np.maximum.accumulate(gain)
        came_from[row] = np.maximum.accumulate(np.where(gain >= running, frames, 0))
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
    first, pending = 0, b""
    for index, token in enumerate([*tokens, None]):
        piece = b"" if token is None else tokenizer.decode_bytes([token])
        if token is None or _begins_word(pending, piece, language):
            if text := pending.decode("utf-8", "ignore"):
                yield text, first, index
            first, pending = index, b""
        pending += piece


def _begins_word(before: bytes, piece: bytes, language: str) -> bool:
    if not before:
        return False
    if piece.startswith(b" ") and piece.strip():
        return True
    return language in _NO_SPACES and _is_whole(before) and _is_whole(piece) and _is_letter(piece)


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
    *,
    language: str,
    duration_s: float,
) -> tuple[Word, ...]:
    """Return the words of `tokens` with times in [0, duration_s].

    `attention` has shape (len(tokens), heads, frames), one row per token, taken when it was decided.
    """
    if not tokens:
        return ()
    frames = max(1, min(attention.shape[2], round(duration_s / FRAME_S)))
    spans = align(attention[:, :, :frames]) * FRAME_S
    return tuple(
        Word(text, min(float(spans[first, 0]), duration_s), min(float(spans[stop - 1, 1]), duration_s))
        for text, first, stop in split_words(tokenizer, tokens, language)
    )
