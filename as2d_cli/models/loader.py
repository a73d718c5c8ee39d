"""Loads plugins by name and calls their hooks.

A plugin is a module named by an entry point of the group `as2d.v1`, with hook implementations at module
level (see `hookspecs`). Its text constant `CONVERTER_VERSION`, where there is one, says which converted
models it can still load; without it every release of the plugin's package converts anew. Its set
`LOADING_OPTIONS` names those options of a model that only loading reads: converted files do not depend on
them. Its set `RUNTIMES` names the packages that run its models: with another version of one, models are
converted and profiles measured anew. Its set `CHANGE_NO_BITS` names what of a run (`threads`) never changes
the text of its targets; all else makes a rerun write outputs anew.

Only the plugin that a model asks for is imported, so a broken other one cannot break the run; whatever goes
wrong in one becomes a `PluginError` that names it. `AS2D_DEBUG_PLUGINS=1` lets the plugin's own error
through instead, shows where one comes from, and traces hook calls on stderr.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from importlib import metadata
from importlib.metadata import EntryPoint
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pluggy

from as2d_cli.domain.errors import As2dError, ModelError, PluginError, RegistryError, RequestError, described
from as2d_cli.models import hookspecs
from as2d_cli.models.discovery import HOOKS, PluginInfo, describe, find_plugin
from as2d_cli.models.registry import ModelEntry, OptionValue
from as2d_cli.system.device import free_memory_bytes
from as2d_cli.system.streams import stdout_to
from as2d_cli.system.toml import suggestion

if TYPE_CHECKING:  # numpy comes with it, and `models list` has no use for numpy
    from as2d_cli.decoding.inner import InnerDrafter
    from as2d_cli.decoding.protocols import Drafter, Target, Tokenizer

T = TypeVar("T")
M = TypeVar("M", "Target", "Drafter")
_SEE_WHERE = "set AS2D_DEBUG_PLUGINS=1 to see where"


def load_plugin(name: str) -> pluggy.HookRelay:
    """Import the plugin `name` and return its hooks.

    Raises `PluginError` if there is no such plugin, if its import fails, if it was made for another version
    of the hooks, or if a hook of it is misspelt or takes arguments that the hook does not have.
    """
    found = find_plugin(name)
    manager = pluggy.PluginManager("as2d")
    manager.add_hookspecs(hookspecs)
    if _is_debugging():
        manager.trace.root.setwriter(sys.stderr.write)
        manager.enable_tracing()
    try:
        manager.register(import_entry_point(found), name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        why, allowed = _misfit(str(error))
        raise PluginError(f"{describe(found)} does not fit this version: {why}", allowed) from error
    return manager.hook


def converter_version(name: str) -> str:
    """Return what tells converted models of the plugin `name` apart from those of another release of it."""
    found = find_plugin(name)
    info = describe(found)
    declared = getattr(import_entry_point(found), "CONVERTER_VERSION", None)
    return f"{info.package}/{declared or info.version}"


def loading_options(entry: ModelEntry) -> dict[str, OptionValue]:
    """Return those options of a model that its converted files do not depend on. Raises `PluginError`."""
    names = loading_option_names(entry.plugin)
    return {name: value for name, value in sorted(entry.options.items()) if name in names}


def settled(entry: ModelEntry) -> ModelEntry:
    """Return the entry with those options filled in that this machine decides. Raises `PluginError`."""
    with _hooks(entry.plugin) as hooks:
        options = hooks.as2d_settle_options(entry=entry)
    return entry if options is None else replace(entry, options=options)


def runs_as(entry: ModelEntry) -> str:
    """Return the options that this machine decides, as text: `backend openvino, precision bf16`.

    Empty if it decides none. Raises `PluginError`, or `ModelError` for what this machine has not.
    """
    decided = settled(entry).options.items() - entry.options.items()
    return ", ".join(f"{name} {value}" for name, value in sorted(decided, key=str))


def option_names(name: str) -> frozenset[str]:
    """Return the names of the options that can be chosen for a run of plugin `name`. Raises `PluginError`."""
    return loading_option_names(name) | converting_option_names(name)


def converting_option_names(name: str) -> frozenset[str]:
    """Return the names of those of them that converted files depend on. Raises `PluginError`."""
    return _named_set(name, "CONVERTING_OPTIONS")


def loading_option_names(name: str) -> frozenset[str]:
    """Return the names of the options that only loading reads in the plugin `name`. Raises `PluginError`."""
    return _named_set(name, "LOADING_OPTIONS")


def changes_bits(name: str, setting: str) -> bool:
    """Tell whether a setting of a run may change the text of the plugin `name`. Raises `PluginError`."""
    return setting not in _named_set(name, "CHANGE_NO_BITS")


def runtime_versions(*plugins: str) -> dict[str, str]:
    """Return the versions of the packages that run the models of these plugins; `none`: not installed.

    Raises `PluginError`.
    """
    packages = {package for name in plugins for package in _named_set(name, "RUNTIMES")}
    return {package: _version(package) for package in sorted(packages)}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def _named_set(plugin: str, constant: str) -> frozenset[str]:
    """Return the names in a constant of a plugin's module. Raises `PluginError` if it is no set of them."""
    names = getattr(import_entry_point(find_plugin(plugin)), constant, ())
    if isinstance(names, set | frozenset | tuple | list) and all(isinstance(name, str) for name in names):
        return frozenset(names)
    raise PluginError(f"{_info(plugin)}: its {constant} are no set of names", "update the plugin")


def convert(entry: ModelEntry, source: Path, destination: Path) -> None:
    """Have the model's plugin turn the verified files in `source` into its own form in `destination`."""
    with _hooks(entry.plugin) as hooks:
        done = hooks.as2d_convert(entry=entry, source=source, destination=destination)
        _answered(entry, done, "convert it")


def check(entry: ModelEntry, settings: Path) -> None:
    """Have the model's plugin look at the settings in the folder `settings`. Raises `ModelError`."""
    with _hooks(entry.plugin) as hooks:
        try:
            hooks.as2d_check(entry=entry, settings=settings)
        except ModelError as error:
            raise ModelError(f"model {entry.name!r}: {error.message}", error.hint) from error


def export(name: str, source: Path, destination: Path, bits: int, *, hqq: bool) -> None:
    """Have the plugin `name` export a user's own checkpoint. Raises `PluginError` if it cannot."""
    with _hooks(name) as hooks:
        done = hooks.as2d_export(source=source, destination=destination, bits=bits, hqq=hqq)
    if not done:
        raise PluginError(f"{_info(name)} does not export checkpoints")


def check_memory(model: str, needed_mb: int, when: str) -> None:
    """Raise `ModelError` if less memory is free than the model needs: the system would kill the process."""
    free = free_memory_bytes()
    if needed_mb and free is not None and free < needed_mb * 1_000_000:
        raise ModelError(
            f"model {model!r} needs {needed_mb / 1e3:.1f} GB of memory {when}; {free / 1e9:.1f} GB are free",
            "end other programs, or choose a smaller model: as2d models list",
        )


def load_target(entry: ModelEntry, path: Path, threads: int, decode_threads: int | None = None) -> Target:
    """Load the converted model in `path` as a target. Raises `PluginError` if its plugin does not.

    Raises `ModelError` if there is not enough memory, or the model cannot be used.
    """
    check_memory(entry.name, entry.memory_mb, "when it is loaded")
    with _hooks(entry.plugin) as hooks:
        target: Target | None = hooks.as2d_load_target(
            entry=entry, path=path, threads=threads, decode_threads=decode_threads or threads
        )
        parts = ("spec", "tokenizer", "open")
        return _specified(entry, _answered(entry, target, "load it as a target", parts), is_target=True)


def load_drafter(entry: ModelEntry, path: Path, threads: int) -> Drafter:
    """Load the converted model in `path` as a drafter. Raises `PluginError` if its plugin does not.

    Raises `ModelError` if there is not enough memory, or the model cannot be used.
    """
    check_memory(entry.name, entry.memory_mb, "when it is loaded")
    with _hooks(entry.plugin) as hooks:
        drafter: Drafter | None = hooks.as2d_load_drafter(entry=entry, path=path, threads=threads)
        parts = ("spec", "tokenizer", "draft")
        return _specified(entry, _answered(entry, drafter, "load it as a drafter", parts), is_target=False)


def drafts_inside(entry: ModelEntry) -> bool:
    """Tell whether a drafter runs in the target's process, by its plugin. Raises `PluginError`."""
    with _hooks(entry.plugin) as hooks:
        return bool(hooks.as2d_drafts_inside(entry=entry))


def load_inner_drafter(entry: ModelEntry, path: Path, threads: int, vocabulary: Tokenizer) -> InnerDrafter:
    """Load a drafter that runs in the target's process. Raises `PluginError` if its plugin does not."""
    with _hooks(entry.plugin) as hooks:
        drafter: InnerDrafter | None = hooks.as2d_load_inner_drafter(
            entry=entry, path=path, threads=threads, vocabulary=vocabulary
        )
        parts = ("languages", "passages", "draft")
        return _answered(entry, drafter, "load it as a drafter inside the target's process", parts)


def load_tokenizer(entry: ModelEntry, path: Path) -> Tokenizer:
    """Load the tokenizer of the converted model in `path`. Raises `PluginError` if its plugin does not."""
    with _hooks(entry.plugin) as hooks:
        tokenizer: Tokenizer | None = hooks.as2d_load_tokenizer(entry=entry, path=path)
        return _answered(entry, tokenizer, "load its tokenizer", ("fingerprint", "encode", "decode_bytes"))


def token_counter(entry: ModelEntry, path: Path) -> Callable[[str], int]:
    """Return what counts the tokens of a text for the model in `path`. Both raise `PluginError`."""
    tokenizer = load_tokenizer(entry, path)

    def count(text: str) -> int:
        with _named(entry.plugin):
            return len(tokenizer.encode(text))

    return count


@contextmanager
def _hooks(name: str) -> Iterator[pluggy.HookRelay]:
    """Load a plugin; whatever a hook of it raises becomes an error that names the plugin."""
    hooks = load_plugin(name)
    with _named(name):
        yield hooks


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Turn whatever code of a plugin raises into an error that names the plugin."""
    try:
        with _away_from_stdout():
            yield
    except (KeyboardInterrupt, ModelError, PluginError, RegistryError, RequestError):
        raise
    except BaseException as error:  # panics of native code are no Exception
        if _is_debugging():
            raise
        raise PluginError(f"{_info(name)} failed: {described(error)}", _SEE_WHERE) from error


def _answered(entry: ModelEntry, answer: T | None, deed: str, parts: Sequence[str] = ()) -> T:
    """Pass on what a hook returned; neither None nor False is an answer, nor what lacks one of `parts`."""
    if answer is None or answer is False:
        raise PluginError(
            f"model {entry.name!r}: {_info(entry.plugin)} does not {deed}",
            "check the model's plugin and role in models.toml, and that the hook is marked with @hookimpl",
        )
    missing = [part for part in parts if not hasattr(answer, part)]
    if missing:
        raise PluginError(
            f"model {entry.name!r}: {_info(entry.plugin)} does not {deed}:"
            f" its {type(answer).__name__} has no {', '.join(missing)}",
            "update the plugin",
        )
    return answer


def _misfit(error: str) -> tuple[str, str]:
    """Return what pluggy found wrong, on one line, and what would be right.

    It names the hook first, then the implementation, and last the arguments that there are not.
    """
    first, *others = error.splitlines()
    why = ": ".join([first, *others[1:]])
    named = re.search(r"hook '(\w+)'", first)
    hook = named[1] if named else ""
    if hook not in HOOKS:
        return why, suggestion(hook, HOOKS)
    return why, f"arguments of {hook}: {', '.join(signature(getattr(hookspecs, hook)).parameters)}"


def failed_draft(plugin: str, error: As2dError) -> str:
    """Return what is told of the first draft that failed."""
    return f"a draft of {_info(plugin)} failed, which costs only speed: {error.with_hint}"


def show_where(error: BaseException) -> None:
    """Write the traceback of an error of foreign code to stderr, if `AS2D_DEBUG_PLUGINS` asks for it."""
    if _is_debugging():
        traceback.print_exception(error)


def _specified(entry: ModelEntry, model: M, *, is_target: bool) -> M:
    """Pass on a model whose facts are what others can go by."""
    from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec  # not at the top: as above
    from as2d_cli.models.validation import spec_flaw

    if flaw := spec_flaw(model.spec, TargetSpec if is_target else DrafterSpec):
        raise PluginError(
            f"model {entry.name!r}: {_info(entry.plugin)} loads it, but {flaw}", "update the plugin"
        )
    return model


def _info(name: str) -> PluginInfo:
    return describe(find_plugin(name))


def import_entry_point(found: EntryPoint) -> object:
    """Return the module or object that an entry point names. Raises `PluginError` if that fails."""
    try:
        with _away_from_stdout():
            return found.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an import can fail in any way, and no plugin may break the tool
        if _is_debugging():
            raise
        raise PluginError(f"{describe(found)} cannot be imported: {described(error)}", _SEE_WHERE) from error


@contextmanager
def _away_from_stdout() -> Iterator[None]:
    """Have what a plugin prints, also by native code, go to stderr: standard output is for results."""
    with stdout_to(2), redirect_stdout(sys.stderr):
        yield


def _is_debugging() -> bool:
    return bool(os.environ.get("AS2D_DEBUG_PLUGINS"))
