r"""Writes Advanced SubStation Alpha, with karaoke: each word takes its colour when it is spoken.

`{\k<n>}` gives what follows n hundredths of a second (libass, "ASS tags"). A backslash or a brace in the text
would be obeyed; FFmpeg's way to keep a backslash (`ff_ass_bprint_text_event`) is a word joiner behind it.
"""

from __future__ import annotations

from as2d_cli.domain.types import Segment, Transcript
from as2d_cli.transcripts.cues import spoken, subtitles

_PER_S = 100
_KEPT = str.maketrans({"\\": "\\\u2060", "{": "\uff5b", "}": "\uff5d", "\n": r"\N"})
_GREY = (160, 160, 160)


def write_ass(transcript: Transcript) -> str:
    """Return the cues of a transcript; those without times of words have no karaoke."""
    import pysubs2  # not at the top: it is needed for this format alone

    file = pysubs2.SSAFile()
    file.styles["Default"].secondarycolor = pysubs2.Color(*_GREY)  # of what is still to be spoken
    for cue, text in subtitles(transcript):
        start, end = (round(seconds * _PER_S) for seconds in (cue.start_s, cue.end_s))
        event = pysubs2.SSAEvent(10 * start, 10 * max(end, start + 1), _karaoke(cue, text, start))
        event.name = (cue.speaker or "").replace(",", " ")
        file.append(event)
    return file.to_string("ass", header_notice="")


def _karaoke(cue: Segment, text: str, now: int) -> str:
    """Return the text of a cue that starts at `now`, with the time of each word before it."""
    written, place = "", 0
    for word in spoken(cue, text, _PER_S):
        if word.start > now:
            written += f"{{\\k{word.start - now}}}"
        written += text[place : word.begin].translate(_KEPT)
        written += f"{{\\k{word.stop - word.start}}}{text[word.begin : word.end].translate(_KEPT)}"
        place, now = word.end, word.stop
    return written + text[place:].translate(_KEPT)
