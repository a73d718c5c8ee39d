"""How much of a window the encoder sees: always 30 s, as in training, or only as far as it is filled.

With `auto` it is only as far, and all of it where the text is in doubt (docs/decisions/0017-rescue.md).

Encoding costs by length, and most of a short window is padding. Whisper was never trained without it, so
the text is not always that of the full context (docs/decisions/0011-fitted-context.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from as2d_cli.plugin import FRAMES_PER_S, Features, ModelError, heard_frames
from as2d_whisper.layout import KEY_MULTIPLE
from as2d_whisper.options import Context

if TYPE_CHECKING:
    from as2d_cli.plugin import ModelEntry

_BASE_WIDTH = 512
_PADDING_S, _SMALL_PADDING_S = 5.0, 9.0
"""What stands behind the audio, for models as wide as base and for smaller ones: less makes texts repeat."""
_STEP = 128
"""Fitted windows have a multiple of so many frames: few shapes, and keys as exact rows need them."""


def read_context(entry: ModelEntry, default: Context) -> Context:
    """Return the model's option `context`. Raises `ModelError` for one that does not exist."""
    given = entry.options.get("context", default)
    if given not in get_args(Context):
        raise ModelError(
            f"model {entry.name!r}: option context is {given!r}", 'it can be "auto", "full" or "fitted"'
        )
    return cast(Context, given)


def fit(features: Features, context: Context, d_model: int) -> Features:
    """Return the frames that the encoder is to see, from the first; of a window, nothing else decides."""
    if context == "full":
        return features
    padding_s = _PADDING_S if d_model >= _BASE_WIDTH else _SMALL_PADDING_S
    wanted = heard_frames(features) + round(padding_s * FRAMES_PER_S)
    return features[:, : -(-wanted // _STEP) * _STEP]


assert _STEP // 2 % KEY_MULTIPLE == 0, "exactness of rows depends on it"
