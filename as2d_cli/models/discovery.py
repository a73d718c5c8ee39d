"""Finds installed plugins by their entry points and tells what they offer, without importing any.

`AS2D_LOAD_PLUGINS=whisper,lookup` leaves out all others.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from as2d_cli.domain.errors import PluginError
from as2d_cli.models import hookspecs
from as2d_cli.system.toml import suggestion

HOOKS = tuple(name for name in vars(hookspecs) if name.startswith("as2d_"))
"""Names of all hooks."""
_ROLES = {
    "as2d_load_target": "target",
    "as2d_load_drafter": "drafter",
    "as2d_load_inner_drafter": "inner drafter",
}
_DAMAGE = (AttributeError, KeyError, TypeError, ValueError)
"""What importlib.metadata raises for files of packages that are not as they should be."""
_ANY_VERSION = re.compile(r"as2d\.v\d+")
_GROUPS = "as2d.v"
_OWN_PACKAGE = "as2d"


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """What is known of a plugin without importing it."""

    name: str
    module: str
    package: str
    version: str
    api: str = hookspecs.GROUP
    """The entry-point group, which is the version of the hooks that it was written for."""
    hooks: tuple[str, ...] | None = None
    """Hooks that its source defines, if that can be read."""

    @property
    def roles(self) -> tuple[str, ...]:
        """What its models can be."""
        return tuple(role for hook, role in _ROLES.items() if hook in (self.hooks or ()))

    def __str__(self) -> str:
        kind = "option" if self.api == hookspecs.OPTIONS_GROUP else "plugin"
        return f"{kind} {self.name!r} ({self.package} {self.version})"


def list_plugins() -> list[PluginInfo]:
    """Return all installed plugins by name, those for other versions of the hooks, too; none is imported."""
    return sorted(map(describe, _installed()), key=lambda info: (info.name, info.api))


def find_plugin(name: str) -> EntryPoint:
    """Return the entry point of the plugin `name`.

    Raises `PluginError` if there is none, more than one, or one for another version of the hooks.
    """
    named = [one for one in _installed() if one.name == name]
    found = [one for one in named if one.group == hookspecs.GROUP]
    if not found:
        raise _absent(name, named)
    if len(found) > 1:
        packages = ", ".join(sorted(describe(one).package for one in found))
        raise PluginError(
            f"more than one package brings a plugin {name!r}: {packages}", "uninstall all but one"
        )
    return found[0]


def only_plugin_with(hook: str) -> str:
    """Return the name of the only plugin that defines a hook. Raises `PluginError` for none or several."""
    able = [
        info.name for info in list_plugins() if info.api == hookspecs.GROUP and hook in (info.hooks or ())
    ]
    if len(able) != 1:
        names = ", ".join(able) or "none"
        raise PluginError(f"one plugin with the hook {hook} is needed; there are: {names}", "name one")
    return able[0]


def find_options() -> list[EntryPoint]:
    """Return the entry points that declare options, of packages with plugins, in order; our own come first.

    A package whose plugins are all left out declares none.
    """
    packages = {_package(plugin) for plugin in _installed()}
    known = _entry_points(tuple(sys.path))
    declared = [one for one in known if one.group == hookspecs.OPTIONS_GROUP and _package(one) in packages]
    return sorted(declared, key=lambda one: (_package(one)[0] != _OWN_PACKAGE, _package(one), one.name))


def describe(found: EntryPoint) -> PluginInfo:
    """Return what can be known of a plugin without importing it."""
    package, version = _package(found)
    return PluginInfo(found.name, found.value, package, version, found.group, _hooks(found))


def _package(found: EntryPoint) -> tuple[str, str]:
    """Return name and version of the package that an entry point is of."""
    try:
        package, version = (found.dist.name, found.dist.version) if found.dist else (None, None)
    except _DAMAGE:
        package = version = None
    return package or "unknown package", version or "?"


def _installed() -> list[EntryPoint]:
    """Return the plugins for any version of the hooks that `AS2D_LOAD_PLUGINS` does not leave out."""
    allowed = _allowed()
    plugins = [one for one in _entry_points(tuple(sys.path)) if _ANY_VERSION.fullmatch(one.group)]
    return [one for one in plugins if allowed is None or one.name in allowed]


@cache
def _entry_points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return what plugins bring on `path`, which is sys.path: every package there has a file to be read."""
    return tuple(one for one in _all_entry_points() if one.group.startswith(_GROUPS))


def _all_entry_points() -> list[EntryPoint]:
    try:
        known = entry_points()
        return [one for group in known.groups for one in known.select(group=group)]
    except _DAMAGE:  # of one package, which must not cost those of the others
        return list(chain.from_iterable(map(_readable, distributions())))


def _readable(package: Distribution) -> list[EntryPoint]:
    try:
        return list(package.entry_points)
    except _DAMAGE:
        return []


def _allowed() -> set[str] | None:
    names = os.environ.get("AS2D_LOAD_PLUGINS")
    return {name.strip() for name in names.split(",")} if names else None


def _absent(name: str, others: list[EntryPoint]) -> PluginError:
    if others:
        info = describe(others[0])
        return PluginError(
            f"{info} is made for {info.api}, this version of as2d for {hookspecs.GROUP}",
            f"install another version of {info.package}, or of as2d",
        )
    allowed = _allowed()
    if allowed is not None and name not in allowed:
        return PluginError(f"plugin {name!r} is not among AS2D_LOAD_PLUGINS", "add it there, or unset that")
    known = [info.name for info in list_plugins()]
    near = suggestion(name, known, "as2d plugins list")
    hint = f"{near}; a plugin is an entry point of the group {hookspecs.GROUP}"
    return PluginError(f"there is no plugin called {name!r}", hint)


def _hooks(found: EntryPoint) -> tuple[str, ...] | None:
    """Return the hooks that the source of a plugin defines; None if there is no source to read."""
    try:
        path = _source(found.module)
        tree = ast.parse(path.read_bytes()) if path else None
    except (OSError, ImportError, SyntaxError, RecursionError, MemoryError, *_DAMAGE):
        # told when it is imported; the parser of Python gives up what is nested too deep by the last two
        return None
    if tree is None:
        return None
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return tuple(hook for hook in HOOKS if hook in defined)


def _source(module: str) -> Path | None:
    """Return the file of `module`. Unlike `find_spec`, import no package on the way to it."""
    name, *rest = module.split(".")
    spec: ModuleSpec | None = find_spec(name)
    for part in rest:
        name = f"{name}.{part}"
        places = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(name, places) if places is not None else None
    return Path(spec.origin) if spec and spec.has_location and spec.origin else None
