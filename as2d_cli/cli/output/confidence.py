"""Words in colours that tell how probable they are, for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from as2d_cli.domain.types import Transcript
from as2d_cli.transcripts.formats import write_txt

_COLOURS = (196, 202, 208, 214, 220, 226, 190, 154, 118, 82)
"""From red to green, the 256-colour numbers of whisper.cpp's --print-colors (`common-whisper.cpp`)."""


def write_coloured(transcript: Transcript) -> str:
    """Return the plain text with each word in the colour of its probability.

    Without any if stdout is no terminal, or one without colours, or if NO_COLOR is set.
    """
    text = Text(write_txt(transcript))
    at = 0
    for word in (word for segment in transcript.segments for word in segment.words):
        shown = word.text.strip()
        place = text.plain.find(shown, at)
        if shown and place >= 0 and word.probability is not None:
            at = place + len(shown)
            text.stylize(f"color({colour(word.probability)})", place, at)
    console = Console()
    with console.capture() as captured:
        console.print(text, soft_wrap=True, end="")
    return captured.get()


def colour(probability: float) -> int:
    """Return the number of a probability's colour; whisper.cpp, too, takes the third power of it.

    >>> colour(0.1), colour(0.8), colour(1.0)
    (196, 226, 82)
    """
    return _COLOURS[min(int(probability**3 * len(_COLOURS)), len(_COLOURS) - 1)]
