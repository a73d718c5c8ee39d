"""Finds plugins without importing them, loads one by name, and calls its hooks.

A plugin is a module named by an entry point of the group `as2d.v1`, with hook implementations at module
level (see `hookspecs`). Its text constant `CONVERTER_VERSION`, where there is one, says which converted
models it can still load; without it every release of the plugin's package converts anew. Its set
`LOADING_OPTIONS` names those options of a model that only loading reads: converted files do not depend on
them.

Only the plugin that a model asks for is imported, so a broken other one cannot break the run.
`AS2D_DEBUG_PLUGINS=1` shows the whole traceback of a plugin that fails to import.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pluggy

from as2d_cli import hookspecs
from as2d_cli.errors import PluginError
from as2d_cli.registry import ModelEntry, OptionValue
from as2d_cli.tables import suggestion

if TYPE_CHECKING:  # numpy comes with it, and `models list` has no use for numpy
    from as2d_cli.decoding.inner import InnerDrafter
    from as2d_cli.decoding.protocols import Drafter, Target, Tokenizer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """What is known of a plugin without importing it."""

    name: str
    module: str
    package: str
    version: str

    def __str__(self) -> str:
        return f"plugin {self.name!r} ({self.package} {self.version})"


def list_plugins() -> list[PluginInfo]:
    """Return all installed plugins by name, none of them imported."""
    return sorted(map(_describe, entry_points(group=hookspecs.GROUP)), key=lambda info: info.name)


def load_plugin(name: str) -> pluggy.HookRelay:
    """Import the plugin `name` and return its hooks.

    Raises `PluginError` if there is no such plugin, if its import fails, or if a hook of it is misspelt
    or takes arguments that the hook does not have.
    """
    found = _find(name)
    manager = pluggy.PluginManager("as2d")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(_import(found), name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(
            f"{_describe(found)} does not fit this version: {_first_line(error)}", "update the plugin"
        ) from error
    return manager.hook


def converter_version(name: str) -> str:
    """Return what tells converted models of the plugin `name` apart from those of another release of it."""
    found = _find(name)
    info = _describe(found)
    declared = getattr(_import(found), "CONVERTER_VERSION", None)
    return f"{info.package}/{declared or info.version}"


def loading_options(entry: ModelEntry) -> dict[str, OptionValue]:
    """Return those options of a model that its converted files do not depend on. Raises `PluginError`."""
    names = loading_option_names(entry.plugin)
    return {name: value for name, value in sorted(entry.options.items()) if name in names}


def loading_option_names(name: str) -> frozenset[str]:
    """Return the names of the options that only loading reads in the plugin `name`. Raises `PluginError`."""
    return frozenset(getattr(_import(_find(name)), "LOADING_OPTIONS", ()))


def convert(entry: ModelEntry, source: Path, destination: Path) -> None:
    """Have the model's plugin turn the verified files in `source` into its own form in `destination`."""
    done = load_plugin(entry.plugin).as2d_convert(entry=entry, source=source, destination=destination)
    _answered(entry, done, "convert it")


def export(name: str, source: Path, destination: Path, bits: int) -> None:
    """Have the plugin `name` export a user's own checkpoint. Raises `PluginError` if it cannot."""
    if not load_plugin(name).as2d_export(source=source, destination=destination, bits=bits):
        raise PluginError(f"{_describe(_find(name))} does not export checkpoints")


def load_target(entry: ModelEntry, path: Path, threads: int, decode_threads: int | None = None) -> Target:
    """Load the converted model in `path` as a target. Raises `PluginError` if its plugin does not."""
    hooks = load_plugin(entry.plugin)
    target: Target | None = hooks.as2d_load_target(
        entry=entry, path=path, threads=threads, decode_threads=decode_threads or threads
    )
    return _answered(entry, target, "load it as a target")


def load_drafter(entry: ModelEntry, path: Path, threads: int) -> Drafter:
    """Load the converted model in `path` as a drafter. Raises `PluginError` if its plugin does not."""
    hooks = load_plugin(entry.plugin)
    drafter: Drafter | None = hooks.as2d_load_drafter(entry=entry, path=path, threads=threads)
    return _answered(entry, drafter, "load it as a drafter")


def drafts_inside(entry: ModelEntry) -> bool:
    """Tell whether a drafter runs in the target's process, by its plugin. Raises `PluginError`."""
    return bool(load_plugin(entry.plugin).as2d_drafts_inside(entry=entry))


def load_inner_drafter(entry: ModelEntry, path: Path, threads: int, vocabulary: Tokenizer) -> InnerDrafter:
    """Load a drafter that runs in the target's process. Raises `PluginError` if its plugin does not."""
    hooks = load_plugin(entry.plugin)
    drafter: InnerDrafter | None = hooks.as2d_load_inner_drafter(
        entry=entry, path=path, threads=threads, vocabulary=vocabulary
    )
    return _answered(entry, drafter, "load it as a drafter inside the target's process")


def load_tokenizer(entry: ModelEntry, path: Path) -> Tokenizer:
    """Load the tokenizer of the converted model in `path`. Raises `PluginError` if its plugin does not."""
    tokenizer: Tokenizer | None = load_plugin(entry.plugin).as2d_load_tokenizer(entry=entry, path=path)
    return _answered(entry, tokenizer, "load its tokenizer")


def _answered(entry: ModelEntry, answer: T | None, deed: str) -> T:
    """Pass on what a hook returned; neither None nor False is an answer."""
    if answer is None or answer is False:
        raise PluginError(
            f"model {entry.name!r}: {_describe(_find(entry.plugin))} does not {deed}",
            "check the model's plugin and role in models.toml",
        )
    return answer


def _find(name: str) -> EntryPoint:
    found = list(entry_points(group=hookspecs.GROUP, name=name))
    if not found:
        known = [info.name for info in list_plugins()]
        raise PluginError(f"there is no plugin called {name!r}", suggestion(name, known))
    if len(found) > 1:
        packages = ", ".join(sorted(_describe(one).package for one in found))
        raise PluginError(
            f"more than one package brings a plugin {name!r}: {packages}", "uninstall all but one"
        )
    return found[0]


def _import(found: EntryPoint) -> object:
    try:
        return found.load()
    except Exception as error:  # an import can fail in any way, and no plugin may break the tool
        if os.environ.get("AS2D_DEBUG_PLUGINS"):
            raise
        raise PluginError(
            f"{_describe(found)} cannot be imported: {type(error).__name__}: {_first_line(error)}",
            "set AS2D_DEBUG_PLUGINS=1 to see where",
        ) from error


def _describe(found: EntryPoint) -> PluginInfo:
    package, version = (found.dist.name, found.dist.version) if found.dist else ("unknown package", "?")
    return PluginInfo(found.name, found.value, package, version)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "no message")
