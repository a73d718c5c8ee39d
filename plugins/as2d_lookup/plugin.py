"""The hooks of the lookup plugin: model entries with `plugin = "lookup"`, which have no options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from as2d_cli.plugin import PluginError, hookimpl

if TYPE_CHECKING:
    from as2d_cli.plugin import InnerDrafter, ModelEntry, Tokenizer

CONVERTER_VERSION = "1"


@hookimpl
def as2d_convert(entry: ModelEntry) -> bool:
    """There is nothing to convert. Raises `PluginError` for options: there are none."""
    if entry.options:
        raise PluginError(f"model {entry.name!r}: the lookup plugin has no options", "leave them out")
    return True


@hookimpl
def as2d_drafts_inside() -> bool:
    """Ask for no process: looking up takes next to no time."""
    return True


@hookimpl
def as2d_load_inner_drafter(vocabulary: Tokenizer) -> InnerDrafter:
    """Make the drafter."""
    from as2d_lookup.drafter import LookupDrafter

    return LookupDrafter(vocabulary)
