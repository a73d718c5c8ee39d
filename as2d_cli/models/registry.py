"""Known models and pairs: the shipped models.toml with the user's own file merged over it.

Data only: nothing here touches the network, the cache or a plugin.

How the user's file is merged: a model table with a `source` replaces a shipped model of that name as a
whole; one without a `source` changes only the keys it gives (`options` and `sha256` key by key). A pair
replaces a pair of the same name; `default_pair` and `default_reader` replace the defaults.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from as2d_cli.domain.errors import RegistryError, RequestError
from as2d_cli.domain.tasks import Task
from as2d_cli.models.sources import PathSource, Source, is_plain_name, read_source
from as2d_cli.system.paths import config_root, expanded
from as2d_cli.system.toml import Table, describe, read_toml, suggestion

SCHEMA = 1
"""The only format of registry files that this version reads."""

NO_DRAFTER = "none"
"""Stands for no drafter where one could be named."""

Role = Literal["target", "drafter", "any"]
OptionValue: TypeAlias = str | int | float | bool | tuple[str, ...]

_MODEL_KEYS = (
    "plugin",
    "role",
    "tasks",
    "shape_of",
    "source",
    "sha256",
    "options",
    "licence",
    "commercial_use",
)
_SIZES = ("download_mb", "making_memory_mb", "memory_mb")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")  # model names become names of folders and locks
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model. `sha256` maps names of source files (after joining) to their hex digests."""

    name: str
    plugin: str
    role: Role
    source: Source
    sha256: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    """Settings that only the plugin understands; they are part of what identifies a converted model."""
    download_mb: int = 0
    """About how much there is to download, megabytes; 0: not much, or not known."""
    making_memory_mb: int = 0
    """About how much memory its conversion takes, megabytes; 0: not much, or not known."""
    memory_mb: int = 0
    """About how much memory it takes when it is loaded, megabytes; 0: not much, or not known."""
    licence: str | None = None
    """Of its weights, by its publisher; None: not known."""
    commercial_use: bool = True
    """False: the licence forbids it."""
    tasks: tuple[Task, ...] | None = None
    """What it can do, where that is to be known before it is loaded; None: the plugin will say."""
    shape_of: str | None = None
    """The model in whose dimensions it has random weights; None: its weights are its own."""

    def fits(self, role: Role) -> bool:
        """Whether the model may be used as `role`."""
        return self.role in {role, "any"}

    def does(self, task: Task) -> bool:
        """Whether the model may be asked to do `task`, as far as is known before it is loaded."""
        return self.tasks is None or task in self.tasks


@dataclass(frozen=True, slots=True)
class PairEntry:
    """A target with a drafter that suits it."""

    name: str
    target: str
    drafter: str


@dataclass(frozen=True, slots=True)
class Registry:
    """All known models and pairs."""

    models: Mapping[str, ModelEntry]
    pairs: Mapping[str, PairEntry]
    default_pair: str
    default_reader: str
    """The model that answers from a transcript."""

    def model(self, name: str) -> ModelEntry:
        """Return the model called `name`. Raises `RegistryError` with the nearest names."""
        if name not in self.models:
            own = _user_registry_file() or _configured()
            hint = f"{suggestion(name, self.models, 'as2d models list')}; your own are read from {own}"
            raise RegistryError(f"there is no model called {name!r}", hint)
        return self.models[name]

    def pair(self, name: str | None = None) -> PairEntry:
        """Return the pair called `name`, or the default pair. Raises `RegistryError`."""
        chosen = self.default_pair if name is None else name
        if chosen not in self.pairs:
            raise RegistryError(f"there is no pair called {chosen!r}", suggestion(chosen, self.pairs))
        return self.pairs[chosen]

    def drafters_of(self, target: ModelEntry) -> tuple[ModelEntry, ...]:
        """Return the drafters that a pair gives the target, the default pair's first."""
        pairs = [self.pair(), *self.pairs.values()]
        names = dict.fromkeys(pair.drafter for pair in pairs if pair.target == target.name)
        return tuple(self.models[name] for name in names)

    def others_of(self, target: ModelEntry, drafter: ModelEntry | None) -> tuple[ModelEntry, ...]:
        """Return the drafters of the target's pairs but `drafter`; none if there is to be no drafter."""
        return tuple(own for own in self.drafters_of(target) if drafter is not None and own != drafter)

    def choose(
        self, target: str | None, drafter: str | None, task: Task = "transcribe"
    ) -> tuple[ModelEntry, ModelEntry | None]:
        """Return the target and the drafter of these names; by default those of the pair.

        `NO_DRAFTER` stands for none. Raises `RegistryError` for a name that is not known, `RequestError` for
        a model that cannot be what it is asked to be, or for a target that cannot do `task`.
        """
        chosen = self.model(target or self.pair().target)
        if drafter is None:
            ahead = next(iter(self.drafters_of(chosen)), None)
        else:
            ahead = None if drafter == NO_DRAFTER else self.model(drafter)
        if not chosen.fits("target"):
            raise RequestError(f"model {chosen.name!r} can only draft", "choose another target")
        if not chosen.does(task):
            raise cannot(chosen.name, task)
        if ahead is not None and not ahead.fits("drafter"):
            raise RequestError(f"model {ahead.name!r} cannot draft", "choose another drafter, or none")
        return chosen, ahead


def cannot(target: str, task: Task) -> RequestError:
    """Return the error for a target that cannot do what is asked for."""
    return RequestError(f"model {target!r} cannot {task}", "choose another with --model")


def load_registry(user_file: Path | None = None) -> Registry:
    """Read the shipped registry and merge the user's file over it.

    The user's file is `user_file`, else `$AS2D_MODELS`, else `models.toml` in the user's configuration
    folder if there is one. Only the last may name files outside its folder: others may be a stranger's.
    Raises `RegistryError` naming file, table and key.
    """
    with resources.as_file(resources.files("as2d_cli.models") / "models.toml") as shipped:
        registry = _merge(Registry({}, {}, "", ""), read_toml(shipped))
    own = user_file or _user_registry_file()
    if own is None:
        return registry
    table = read_toml(own)
    registry = _merge(registry, table)
    if own.absolute() != _configured():
        for name, inner in table.tables("models"):
            _check_within(Path(os.path.realpath(own.parent)), registry.models[name], inner.table("source"))
    return registry


def _user_registry_file() -> Path | None:
    """Return the user's registry file: `$AS2D_MODELS`, else the one in the configuration folder, if any."""
    if given := os.environ.get("AS2D_MODELS"):
        return expanded(given)
    file = _configured()
    return file if file.is_file() else None


def _configured() -> Path:
    return config_root() / "models.toml"


def _check_within(folder: Path, entry: ModelEntry, table: Table) -> None:
    """Raise `RegistryError` for files outside `folder`, links followed: the registry may be a stranger's."""
    source = entry.source
    if not isinstance(source, PathSource) or not table.values:
        return
    for name in source.files:
        if not Path(os.path.realpath(source.directory / name)).is_relative_to(folder):
            hint = f"put them below it; only {_configured()} may name files elsewhere"
            table.fail("directory", f"{name!r} would not be in the folder of this registry", hint)


def _merge(base: Registry, top: Table) -> Registry:
    top.allow("schema", "default_pair", "default_reader", "models", "pairs")
    schema = top.required("schema", int)
    if schema != SCHEMA:
        top.fail("schema", f"this version reads schema {SCHEMA}, found {schema}")
    models = dict(base.models)
    for name, table in top.tables("models"):
        models[name] = _read_model(name, table, base.models.get(name))
    pairs = dict(base.pairs)
    for name, table in top.tables("pairs"):
        table.allow("target", "drafter")
        pairs[name] = PairEntry(name, table.required("target", str), table.required("drafter", str))
    for pair in pairs.values():
        _check_pair(pair, models, Table(top.file, f"pairs.{pair.name}", {}))
    default = top.optional("default_pair", str) or base.default_pair
    if default not in pairs:
        top.fail("default_pair", f"there is no pair called {default!r}", suggestion(default, pairs))
    reader = top.optional("default_reader", str) or base.default_reader
    if reader not in models:
        top.fail("default_reader", f"there is no model called {reader!r}", suggestion(reader, models))
    return Registry(models, pairs, default, reader)


def _read_model(name: str, table: Table, shipped: ModelEntry | None) -> ModelEntry:
    table.allow(*_MODEL_KEYS, *_SIZES)
    if not (_NAME.fullmatch(name) and is_plain_name(name)):
        table.fail(None, f"{name!r} cannot be a model name", "use up to 100 letters, digits and . _ + -")
    sha256 = _read_sha256(table.table("sha256"))
    options = {key: _read_option(table.table("options"), key) for key in table.table("options").values}
    facts = _read_facts(table)
    if shipped is not None and "source" not in table.values:
        merged = replace(
            shipped,
            plugin=table.optional("plugin", str) or shipped.plugin,
            role=_read_role(table) if "role" in table.values else shipped.role,
            sha256={**shipped.sha256, **sha256},
            options={**shipped.options, **options},
            **facts,
        )
    else:
        table.required("source", dict)
        source = read_source(table.table("source"))
        plugin = table.required("plugin", str)
        merged = ModelEntry(name, plugin, _read_role(table), source, sha256, options, **facts)
    for file_name in merged.sha256:
        if file_name not in merged.source.file_names:
            hint = suggestion(file_name, merged.source.file_names)
            table.table("sha256").fail(file_name, "the source has no such file", hint)
    return merged


def _read_facts(table: Table) -> dict[str, Any]:
    """Return those optional facts about a model that are given."""
    facts: dict[str, object] = {
        **{key: table.optional(key, int) for key in _SIZES},
        **{key: table.optional(key, str) for key in ("licence", "shape_of")},
        "commercial_use": table.optional("commercial_use", bool),
        "tasks": _read_tasks(table) if "tasks" in table.values else None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _read_role(table: Table) -> Role:
    return cast(Role, table.choice("role", get_args(Role)))


def _read_tasks(table: Table) -> tuple[Task, ...]:
    tasks = table.texts("tasks")
    for task in tasks:
        if task not in get_args(Task):
            table.fail("tasks", f"{task!r} is not possible here", suggestion(task, get_args(Task)))
    return cast("tuple[Task, ...]", tasks)


def _read_sha256(table: Table) -> dict[str, str]:
    digests = {name: table.required(name, str) for name in table.values}
    for name, digest in digests.items():
        if not _SHA256.fullmatch(digest):
            table.fail(name, f"expected 64 lower-case hexadecimal digits, found {digest!r}")
    return digests


def _read_option(table: Table, key: str) -> OptionValue:
    value = table.values[key]
    if isinstance(value, list):
        return table.texts(key)
    if not isinstance(value, str | int | float | bool):
        table.fail(key, f"expected a text, a number, true, false or a list of texts, found {describe(value)}")
    return value


def _check_pair(pair: PairEntry, models: Mapping[str, ModelEntry], table: Table) -> None:
    roles: tuple[tuple[Role, str], ...] = (("target", pair.target), ("drafter", pair.drafter))
    for role, name in roles:
        if name not in models:
            table.fail(role, f"there is no model called {name!r}", suggestion(name, models))
        if not models[name].fits(role):
            table.fail(role, f"{name!r} is not a {role} but a {models[name].role}")
