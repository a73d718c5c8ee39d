"""as2d: transcribe audio on your own machine; a drafter runs ahead, the target verifies.

In a program:

    from as2d_cli import transcribe

    for outcome in transcribe("talk.mp3"):
        print(outcome.transcript.text if outcome.transcript else outcome.error)

What is named here is the public API for programs, `as2d_cli.plugin` and `as2d_cli.testing` are that for
plugins; all else may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from as2d_cli.api import Transcriber, Transcription, transcribe
    from as2d_cli.batch.work import FileOutcome
    from as2d_cli.domain.errors import (
        As2dError,
        AudioError,
        DecodeError,
        ModelError,
        OutputError,
        PluginError,
        RegistryError,
        RequestError,
    )
    from as2d_cli.domain.types import Segment, Transcript, Word

__version__ = "0.1.0"
__all__ = [
    "As2dError",
    "AudioError",
    "DecodeError",
    "FileOutcome",
    "ModelError",
    "OutputError",
    "PluginError",
    "RegistryError",
    "RequestError",
    "Segment",
    "Transcriber",
    "Transcript",
    "Transcription",
    "Word",
    "__version__",
    "transcribe",
]
_HOMES = {
    **dict.fromkeys(("Transcriber", "Transcription", "transcribe"), "api"),
    "FileOutcome": "batch.work",
    **dict.fromkeys(("Segment", "Transcript", "Word"), "domain.types"),
}
"""Modules of public names; what is in none of them is an error."""


def __getattr__(name: str) -> object:
    """Import what is public when it is first asked for: numpy, for one, takes its time."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'domain.errors')}"), name)
    return value
