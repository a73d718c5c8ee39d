"""The hooks of the scripted plugin: model entries with `plugin = "scripted"`, options as in the classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from as2d_cli.plugin import PluginError, hookimpl
from as2d_scripted.drafter import ScriptedDrafter
from as2d_scripted.inner import ScriptedInnerDrafter
from as2d_scripted.script import Script
from as2d_scripted.target import ScriptedTarget
from as2d_scripted.tokenizer import ScriptedTokenizer

if TYPE_CHECKING:  # the registry is not needed to run this plugin
    from as2d_cli.plugin import ModelEntry, Tokenizer

CHANGE_NO_BITS = frozenset({"threads"})
"""What of a run never changes a text."""

_TOKENIZERS = {"words": True, "bytes": False}


@hookimpl
def as2d_convert() -> bool:
    """There is nothing to convert: the options are the model."""
    return True


@hookimpl
def as2d_load_target(entry: ModelEntry) -> ScriptedTarget:
    """Build a target from the entry's options."""
    return ScriptedTarget(**_options(entry, ScriptedTarget))


@hookimpl
def as2d_load_drafter(entry: ModelEntry) -> ScriptedDrafter:
    """Build a drafter from the entry's options."""
    return ScriptedDrafter(**_options(entry, ScriptedDrafter))


@hookimpl
def as2d_drafts_inside(entry: ModelEntry) -> bool:
    """Say what the entry's options say."""
    return bool(entry.options.get("inner"))


@hookimpl
def as2d_load_inner_drafter(entry: ModelEntry, vocabulary: Tokenizer) -> ScriptedInnerDrafter:
    """Build a drafter from the entry's options. Raises `PluginError` for a target of another vocabulary."""
    drafter = ScriptedDrafter(**_options(entry, ScriptedDrafter))
    if drafter.tokenizer.fingerprint != vocabulary.fingerprint:
        raise PluginError(f"model {entry.name!r} drafts in another vocabulary than the target's")
    return ScriptedInnerDrafter(drafter)


@hookimpl
def as2d_load_tokenizer(entry: ModelEntry) -> ScriptedTokenizer:
    """Build the tokenizer that the entry's options name."""
    return _tokenizer(entry)


def _options(entry: ModelEntry, model: type[ScriptedTarget] | type[ScriptedDrafter]) -> dict[str, Any]:
    """Return the arguments of `model`: script options become its script, `tokenizer` a tokenizer."""
    script = _defaults(Script())
    own = {name: default for name, default in _defaults(model()).items() if name != "script"}
    _check(entry, {**script, **own, "tokenizer": "words"})
    given = dict(entry.options)
    chosen = {name: given[name] for name in own if name in given}
    spoken: dict[str, Any] = {name: given[name] for name in script if name in given}
    return {**chosen, "script": Script(**spoken), "tokenizer": _tokenizer(entry)}


def _defaults(model: Script | ScriptedTarget | ScriptedDrafter) -> dict[str, Any]:
    return {item.name: getattr(model, item.name) for item in fields(model)}


def _check(entry: ModelEntry, known: Mapping[str, Any]) -> None:
    for name, value in entry.options.items():
        if name not in known:
            raise PluginError(
                f"model {entry.name!r}: the scripted plugin has no option {name!r}",
                f"options: {', '.join(sorted(known))}",
            )
        wanted = type(known[name])
        whole_number = wanted is float and type(value) is int
        if type(value) is not wanted and not whole_number:
            raise PluginError(f"model {entry.name!r}: option {name!r} must be of type {wanted.__name__}")


def _tokenizer(entry: ModelEntry) -> ScriptedTokenizer:
    name = entry.options.get("tokenizer", "words")
    if name not in _TOKENIZERS:
        raise PluginError(
            f"model {entry.name!r}: no scripted tokenizer {name!r}",
            f"choose one of: {', '.join(_TOKENIZERS)}",
        )
    return ScriptedTokenizer(words=_TOKENIZERS[str(name)])
