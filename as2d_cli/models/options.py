"""Options of one family's models that are chosen for a run: its plugin declares them, as2d passes them on.

A declaration is a `ModelOption` that an entry point of the group `as2d.v1.options` names; the entry point's
name is the option's. It is a flag of the commands that work on audio, a setting, and a keyword of
`transcribe`. The models that have it are those whose plugin names it in its `LOADING_OPTIONS`, or in its
`CONVERTING_OPTIONS` if converted files depend on it.

Only modules with declarations are imported. A declaration that cannot be used costs a warning.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint

from as2d_cli.domain.errors import PluginError, RequestError
from as2d_cli.models import loader
from as2d_cli.models.discovery import describe, find_options
from as2d_cli.models.registry import ModelEntry
from as2d_cli.system.toml import suggestion

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class ModelOption:
    """An option of a plugin's models; its values are texts."""

    choices: tuple[str, ...]
    help: str
    """What it does, one line."""
    refusal: str
    """Completes `model X …` where a model has no such option: `has only one context`."""


@dataclass(frozen=True, slots=True)
class DeclaredOptions:
    """All options by name, and a warning for each declaration that cannot be used."""

    options: Mapping[str, ModelOption]
    warnings: tuple[str, ...] = ()


def declared_options(reserved: Collection[str] = ()) -> DeclaredOptions:
    """Read the declarations of all plugins; names in `reserved`, and names twice, cannot be used."""
    options: dict[str, ModelOption] = {}
    warnings = []
    for declaration in find_options():
        try:
            option = _read(declaration)
            if declaration.name in reserved:
                raise PluginError(f"{describe(declaration)} cannot be used: as2d has an option of this name")
            if options.setdefault(declaration.name, option) != option:
                raise PluginError(f"{describe(declaration)} cannot be used: another plugin has declared it")
        except PluginError as error:
            warnings.append(f"warning: {error.with_hint}")
    return DeclaredOptions(options, tuple(warnings))


def with_options(
    target: ModelEntry, values: Mapping[str, str | None], declared: DeclaredOptions
) -> ModelEntry:
    """Return the target with these values of declared options; None leaves one as it is.

    Raises `RequestError` for what does not exist, or not for this model, `PluginError` without its plugin.
    """
    given = {name: value for name, value in values.items() if value is not None}
    for name, value in given.items():
        if name not in declared.options:
            raise RequestError(f"there is no option {name!r}", suggestion(name, declared.options))
        option, spoken = declared.options[name], name.replace("_", " ")
        if value not in option.choices:
            raise RequestError(f"there is no {spoken} {value!r}", f"{spoken}s: {', '.join(option.choices)}")
        if name not in loader.option_names(target.plugin):
            raise RequestError(
                f"model {target.name!r} {option.refusal}", f"leave out --{name.replace('_', '-')}"
            )
    return replace(target, options={**target.options, **given}) if given else target


def beside_target(drafter: ModelEntry, values: Mapping[str, str | None]) -> ModelEntry:
    """Return a drafter with those values, chosen for the target, that say how models are made: its engine."""
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        return drafter
    try:
        names = loader.converting_option_names(drafter.plugin)
    except PluginError:  # which costs its drafts, and is told when it is to be loaded
        return drafter
    return replace(
        drafter, options={**drafter.options, **{name: given[name] for name in names & given.keys()}}
    )


def _read(declaration: EntryPoint) -> ModelOption:
    """Import what an entry point names. Raises `PluginError` if it is no declaration."""
    option = loader.import_entry_point(declaration)
    if not _NAME.fullmatch(declaration.name) or keyword.iskeyword(declaration.name):
        raise PluginError(f"{describe(declaration)} cannot be used: no such name can be a flag")
    if type(option) is not ModelOption or not (_is_texts(option.choices) and option.choices):
        raise PluginError(f"{describe(declaration)} cannot be used: it is no ModelOption with choices")
    if not _is_texts((option.help, option.refusal)):
        raise PluginError(f"{describe(declaration)} cannot be used: help and refusal must be texts")
    return option


def _is_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) for value in values)
