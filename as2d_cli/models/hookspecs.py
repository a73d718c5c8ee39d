"""The hooks a plugin may implement, all in one place. Entry-point group: `as2d.v1`.

An implementation takes those arguments by name that it needs, and leaves out the others. What goes wrong it
raises as `ModelError`, for the entry's options or files, or as another `As2dError`: one line for the user,
and a hint. All other exceptions are shown as bugs of the plugin. Hooks are called in any process of the tool,
so they print nothing and read no standard input.

The version in the group's name is that of this module and of all that hooks return: a change that a plugin
could notice makes it another group.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:  # the plugin decides what to import; listing plugins must stay cheap
    from collections.abc import Mapping

    from as2d_cli.decoding.inner import InnerDrafter
    from as2d_cli.decoding.protocols import Drafter, Target, Tokenizer
    from as2d_cli.models.registry import ModelEntry, OptionValue

GROUP = "as2d.v1"
OPTIONS_GROUP = f"{GROUP}.options"
"""Of the options that plugins declare, see `options`."""
hookspec = pluggy.HookspecMarker("as2d")
hookimpl = pluggy.HookimplMarker("as2d")


@hookspec(firstresult=True)
def as2d_settle_options(entry: ModelEntry) -> Mapping[str, OptionValue] | None:
    """Return the entry's options with those filled in that this machine decides, or None if it decides none.

    Called often, so it must be quick; and the same for the same machine, as converted files and outputs go by
    it. Asked again with what it returned, it must return that.
    """


@hookspec(firstresult=True)
def as2d_convert(entry: ModelEntry, source: Path, destination: Path) -> bool | None:
    """Turn the verified files in `source` into what this plugin loads, inside the folder `destination`.

    Done once, and anew when the entry or the plugin's `CONVERTER_VERSION` changes. Returns True. Runs in
    a process of its own; a model without files has an empty `source`, and may write nothing.
    """


@hookspec
def as2d_check(entry: ModelEntry, settings: Path) -> None:
    """Refuse a model by its settings, before its large files are fetched; see `sources.is_settings`.

    `settings` is the folder that they are in, `entry.source.file_names` what else there will be. Raises
    `ModelError`.
    """


@hookspec(firstresult=True)
def as2d_export(source: Path, destination: Path, bits: int, hqq: bool) -> bool | None:
    """Export the checkpoint in `source` to the new folder `destination`, in a form that `as2d_convert` takes.

    `bits` is the precision of the decoder's weights; with `hqq` they are to be rounded by half-quadratic
    quantisation.
    """


@hookspec(firstresult=True)
def as2d_load_target(entry: ModelEntry, path: Path, threads: int, decode_threads: int) -> Target | None:
    """Load the converted model in `path` as a target, or return None if it is not this plugin's.

    `decode_threads` are for the passes of the decode loop, `threads` for all else. A target whose text
    could depend on the first must take the second for everything; an implementation may leave it out.
    """


@hookspec(firstresult=True)
def as2d_load_drafter(entry: ModelEntry, path: Path, threads: int) -> Drafter | None:
    """Load the converted model in `path` as a drafter, or return None if it is not this plugin's.

    It is to run on `threads`. Called in the drafter's process: a crash there costs drafts only.
    """


@hookspec(firstresult=True)
def as2d_drafts_inside(entry: ModelEntry) -> bool | None:
    """Tell whether the drafter runs in the target's process, see `decoding.inner`; by default not."""


@hookspec(firstresult=True)
def as2d_load_inner_drafter(
    entry: ModelEntry, path: Path, threads: int, vocabulary: Tokenizer
) -> InnerDrafter | None:
    """Load a drafter that runs in the target's process and drafts in `vocabulary`, the target's."""


@hookspec(firstresult=True)
def as2d_load_tokenizer(entry: ModelEntry, path: Path) -> Tokenizer | None:
    """Load only the tokenizer of the converted model in `path`: every plugin with targets needs it.

    The drafter's process has it beside the drafter, to turn drafts into the target's tokens.
    """
