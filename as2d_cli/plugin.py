"""All that a plugin may import of as2d, besides `as2d_cli.testing`; docs/plugins.md says how it is used.

hooks            hookimpl, ModelEntry, ModelOption, OptionValue
targets          Target, TargetSpec, TargetSession, ConfidentSession, ShowsStates, States
drafters         Drafter, DrafterSpec, DraftToken, END, SessionDrafter, DrafterSession
inner drafters   InnerDrafter, DraftView, Earlier
tokens           Tokenizer, ByteTokenizer, BYTE_OF, TokenIds, best_of_rows, logprobs_of
input            Features, FeatureSpec, NOTHING_HEARD, FRAMES_PER_S, heard_frames
requests         Request, Task, LANGUAGES, language_of_window, Word
errors           As2dError and those below it, reason
files            read_json, read_model_json, read_sealed, write_sealed, is_plain_name
native code      import_native, run_apart, stdout_to_nobody, device

A name is imported from where it is defined when it is first asked for: to import a plugin must not take
numpy's time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from as2d_cli.audio.log_mel import heard_frames
    from as2d_cli.decoding.byte_tokens import BYTE_OF, ByteTokenizer
    from as2d_cli.decoding.greedy import best_of_rows, logprobs_of
    from as2d_cli.decoding.inner import DraftView, Earlier, InnerDrafter, ShowsStates, States
    from as2d_cli.decoding.protocols import (
        END,
        ConfidentSession,
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
        reason,
    )
    from as2d_cli.domain.languages import LANGUAGES, language_of_window
    from as2d_cli.domain.tasks import Task
    from as2d_cli.domain.types import (
        FRAMES_PER_S,
        NOTHING_HEARD,
        Features,
        FeatureSpec,
        Request,
        TokenIds,
        Word,
    )
    from as2d_cli.models.apart import run_apart
    from as2d_cli.models.hookspecs import hookimpl
    from as2d_cli.models.native import import_native
    from as2d_cli.models.options import ModelOption
    from as2d_cli.models.registry import ModelEntry, OptionValue
    from as2d_cli.models.sources import is_plain_name
    from as2d_cli.system.atomic_files import read_sealed, write_sealed
    from as2d_cli.system.device import device
    from as2d_cli.system.json_files import read_json, read_model_json
    from as2d_cli.system.streams import stdout_to_nobody

__all__ = [
    "BYTE_OF",
    "END",
    "FRAMES_PER_S",
    "LANGUAGES",
    "NOTHING_HEARD",
    "As2dError",
    "AudioError",
    "ByteTokenizer",
    "ConfidentSession",
    "DecodeError",
    "DraftToken",
    "DraftView",
    "Drafter",
    "DrafterSession",
    "DrafterSpec",
    "Earlier",
    "FeatureSpec",
    "Features",
    "InnerDrafter",
    "ModelEntry",
    "ModelError",
    "ModelOption",
    "OptionValue",
    "OutputError",
    "PluginError",
    "RegistryError",
    "Request",
    "RequestError",
    "SessionDrafter",
    "ShowsStates",
    "States",
    "Target",
    "TargetSession",
    "TargetSpec",
    "Task",
    "TokenIds",
    "Tokenizer",
    "Word",
    "best_of_rows",
    "device",
    "heard_frames",
    "hookimpl",
    "import_native",
    "is_plain_name",
    "language_of_window",
    "logprobs_of",
    "read_json",
    "read_model_json",
    "read_sealed",
    "reason",
    "run_apart",
    "stdout_to_nobody",
    "write_sealed",
]

_NAMES_OF = {
    "audio.log_mel": "heard_frames",
    "decoding.byte_tokens": "BYTE_OF ByteTokenizer",
    "decoding.greedy": "best_of_rows logprobs_of",
    "decoding.inner": "DraftView Earlier InnerDrafter ShowsStates States",
    "decoding.protocols": "END ConfidentSession Drafter DrafterSession DrafterSpec DraftToken SessionDrafter"
    " Target TargetSession TargetSpec Tokenizer",
    "domain.errors": "As2dError AudioError DecodeError ModelError OutputError PluginError RegistryError"
    " RequestError reason",
    "domain.languages": "LANGUAGES language_of_window",
    "domain.tasks": "Task",
    "domain.types": "FRAMES_PER_S NOTHING_HEARD Features FeatureSpec Request TokenIds Word",
    "models.apart": "run_apart",
    "models.hookspecs": "hookimpl",
    "models.options": "ModelOption",
    "models.registry": "ModelEntry OptionValue",
    "models.sources": "is_plain_name",
    "system.atomic_files": "read_sealed write_sealed",
    "system.device": "device",
    "system.json_files": "read_json read_model_json",
    "models.native": "import_native",
    "system.streams": "stdout_to_nobody",
}
_HOMES = {name: module for module, names in _NAMES_OF.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"as2d_cli.{_HOMES[name]}"), name)
    return value
