"""Which of several audio tracks, and which of their channels, is heard."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from as2d_cli.audio.readers import NoTrackError, Track
from as2d_cli.domain.errors import RequestError
from as2d_cli.domain.languages import AUTO, language_code

MIX, EACH = "mix", "each"
_SIDES = {"left": "1", "right": "2", MIX: MIX, EACH: EACH}


@dataclass(frozen=True, slots=True)
class AudioChoice:
    """What to hear of files that hold more than one thing to hear; None leaves it to the file."""

    track: str | None = None
    """Number from 1, or Whisper language code."""
    channel: str | None = None
    """Number from 1, `MIX` for all of them, or `EACH` for each apart. Mono is heard as it is."""


NO_CHOICE = AudioChoice()


def track_choice(text: str | None) -> str | None:
    """Return a track as `AudioChoice` has it. Raises `RequestError` for what is no number and no language."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return _number("audio-track", text, "give a number from 1, or a language")
    try:
        return language_code(text)
    except RequestError as error:
        raise RequestError(f"--audio-track is no number from 1, and {error.message}", error.hint) from error


def channel_choice(text: str | None) -> str | None:
    """Return a channel as `AudioChoice` has it. Raises `RequestError`."""
    word = AUTO if text is None else text.strip().lower()
    if word == AUTO:
        return None
    return _SIDES.get(word) or _number("channel", word, "give a number from 1, left, right, mix or each")


def _number(option: str, text: str, hint: str) -> str:
    if not text.strip().isdecimal() or not 0 < int(text) < 1000:
        raise RequestError(f"--{option} cannot be {text!r}", hint)
    return str(int(text))


def choose_track(tracks: Sequence[Track], wanted: str | None) -> int:
    """Return the index of the track to hear: the one that is wanted, the file's default, or the first.

    A single track of unknown language is the one in any language. Raises `NoTrackError`.
    """
    if wanted is None:
        return next((index for index, track in enumerate(tracks) if track.is_default), 0)
    if wanted.isdecimal():
        if int(wanted) > len(tracks):
            raise NoTrackError(described(tracks))
        return int(wanted) - 1
    codes = [_code(track.language) for track in tracks]
    if wanted in codes:
        return codes.index(wanted)
    if codes == [None]:
        return 0
    raise NoTrackError(described(tracks))


def _code(tag: str | None) -> str | None:
    with suppress(RequestError):
        return language_code(tag) if tag and tag != "und" else None
    return tag


def described(tracks: Sequence[Track]) -> str:
    """Return the tracks with their numbers: `1: fre, 2: eng "Commentary"`."""
    return ", ".join(
        f"{number}: {track.label}" if track.label else str(number) for number, track in enumerate(tracks, 1)
    )
