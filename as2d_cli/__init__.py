"""as2d: transcribe audio on your own machine; a drafter runs ahead, the target verifies.

In a program:

    from as2d_cli import transcribe

    for outcome in transcribe("talk.mp3"):
        print(outcome.transcript.text if outcome.transcript else outcome.error)

For plugins: the hooks (`hookspecs`), what they return (`Target`, `Drafter`, `InnerDrafter` and what these
are made of), and `as2d_cli.testing`. What is named here is the public API; all else may change.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from as2d_cli.api import Transcriber, Transcription, transcribe
    from as2d_cli.batch.work import FileOutcome
    from as2d_cli.decoding.byte_tokens import ByteTokenizer
    from as2d_cli.decoding.inner import DraftView, Earlier, InnerDrafter, ShowsStates, States
    from as2d_cli.decoding.protocols import (
        END,
        Drafter,
        DrafterSession,
        DrafterSpec,
        DraftToken,
        SessionDrafter,
        Target,
        TargetSession,
        TargetSpec,
        Tokenizer,
    )
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
    from as2d_cli.domain.types import (
        NOTHING_HEARD,
        Features,
        FeatureSpec,
        Request,
        Segment,
        TokenIds,
        Transcript,
        Word,
    )
    from as2d_cli.models.hookspecs import hookimpl
    from as2d_cli.models.registry import ModelEntry

__version__ = "0.1.0"
__all__ = [
    "END",
    "NOTHING_HEARD",
    "As2dError",
    "AudioError",
    "ByteTokenizer",
    "DecodeError",
    "DraftToken",
    "DraftView",
    "Drafter",
    "DrafterSession",
    "DrafterSpec",
    "Earlier",
    "FeatureSpec",
    "Features",
    "FileOutcome",
    "InnerDrafter",
    "ModelEntry",
    "ModelError",
    "OutputError",
    "PluginError",
    "RegistryError",
    "Request",
    "RequestError",
    "Segment",
    "SessionDrafter",
    "ShowsStates",
    "States",
    "Target",
    "TargetSession",
    "TargetSpec",
    "TokenIds",
    "Tokenizer",
    "Transcriber",
    "Transcript",
    "Transcription",
    "Word",
    "__version__",
    "hookimpl",
    "transcribe",
]
_HOMES = {
    "api": {"Transcriber", "Transcription", "transcribe"},
    "decoding.byte_tokens": {"ByteTokenizer"},
    "decoding.inner": {"DraftView", "Earlier", "InnerDrafter", "ShowsStates", "States"},
    "models.hookspecs": {"hookimpl"},
    "models.registry": {"ModelEntry"},
    "batch.work": {"FileOutcome"},
    "domain.types": {
        "NOTHING_HEARD",
        "FeatureSpec",
        "Features",
        "Request",
        "Segment",
        "TokenIds",
        "Transcriber",
        "Transcript",
        "Transcription",
        "Word",
    },
}
"""Modules of public names; what is in none of them is an error or in `decoding.protocols`."""


def _home(name: str) -> str:
    """Return the module that defines a public name."""
    if name.endswith("Error"):
        return "domain.errors"
    return next((module for module, names in _HOMES.items() if name in names), "decoding.protocols")


def __getattr__(name: str) -> object:
    """Import what is public when it is first asked for: numpy, for one, takes its time."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_home(name)}"), name)
    return value
