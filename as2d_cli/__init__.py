"""as2d: transcribe audio on your own machine; a drafter runs ahead, the target verifies.

In a program:

    from as2d_cli import transcribe

    for outcome in transcribe("talk.mp3"):
        print(outcome.transcript.text if outcome.transcript else outcome.error)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from as2d_cli.api import transcribe
    from as2d_cli.errors import (
        As2dError,
        AudioError,
        DecodeError,
        ModelError,
        OutputError,
        PluginError,
        RegistryError,
        RequestError,
    )
    from as2d_cli.requests import FileOutcome
    from as2d_cli.types import Segment, Transcript, Word

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
    "Transcript",
    "Word",
    "__version__",
    "transcribe",
]


def _home(name: str) -> str:
    """Return the module that defines a public name."""
    if name.endswith("Error"):
        return "errors"
    return {"transcribe": "api", "FileOutcome": "requests"}.get(name, "types")


def __getattr__(name: str) -> object:
    """Import what is public when it is first asked for: numpy, for one, takes its time."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_home(name)}"), name)
    return value
