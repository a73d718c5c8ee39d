"""`as2d models`: what is known, what is in the cache, and moving models between the two states."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from as2d_cli.cli.commands.catalog import group
from as2d_cli.cli.output.columns import print_table
from as2d_cli.cli.output.fetch_progress import shown_progress
from as2d_cli.cli.output.messages import tell
from as2d_cli.domain.errors import As2dError, ModelError
from as2d_cli.models import cache, loader, weights
from as2d_cli.models.discovery import only_plugin_with
from as2d_cli.models.registry import ModelEntry, load_registry
from as2d_cli.system.printable import printable
from as2d_cli.system.streams import stdout_to

app = group("models")

_NAMES = "Model (see: as2d models list)."


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of `as2d models list`; `bytes` counts older conversions of the model, too."""

    name: str
    role: str
    plugin: str
    source: str
    cached: bool
    bytes: int
    licence: str | None
    commercial_use: bool
    runs_as: str = ""
    """What this machine decides on: the engine and its precision."""


@app.command("list")
def list_models(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say also what each model runs on here.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead of a table.")] = False,
) -> None:
    """List the known models and which of them are in the cache."""
    rows = [_row(entry, verbose=verbose) for entry in load_registry().models.values()]
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    runs_on = ("RUNS ON",) if verbose else ()
    table: list[tuple[str, ...]] = [
        ("NAME", "ROLE", "PLUGIN", "SOURCE", "CACHED", "SIZE", *runs_on, "LICENCE")
    ]
    table += [
        (
            row.name,
            row.role,
            row.plugin,
            row.source,
            "yes" if row.cached else "no",
            _size(row.bytes),
            *((row.runs_as or "-",) if verbose else ()),
            _terms(row),
        )
        for row in rows
    ]
    print_table(table)


@app.command()
def pull(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", show_default=False, help=_NAMES)
    ] = None,
) -> None:
    """Fetch and convert models ahead of their first use.

    Prints the folder of each. Without NAME, those of the default pair. Says so where a licence forbids
    commercial use.
    """
    registry = load_registry()
    pair = registry.pair()
    for entry in [registry.model(name) for name in names or (pair.target, pair.drafter)]:
        if not entry.commercial_use and weights.find(entry) is None:
            tell(f"{entry.name}: the licence, {entry.licence}, forbids commercial use")
        with shown_progress() as progress:
            folder = weights.ensure(entry, progress)
        typer.echo(folder)


@app.command()
def path(name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help=_NAMES)]) -> None:
    """Print the folder of a converted model in the cache."""
    folder = weights.find(load_registry().model(name))
    if folder is None:
        raise _not_cached(name)
    typer.echo(folder)


@app.command()
def verify(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", show_default=False, help="Model; without it, all in the cache."),
    ] = None,
) -> None:
    """Check that files in the cache are as they were made.

    Compares them with the digests taken then; the exit code is 1 if one differs.
    """
    if name is not None and not cache.stored_conversions(_known(name)):
        raise _not_cached(name)
    damaged = False
    for model in [name] if name is not None else cache.stored_models():
        for folder in cache.stored_conversions(model):
            faults = cache.damaged_files(folder)
            damaged = damaged or bool(faults)
            state = "damaged: " + ", ".join(faults) if faults else "ok"
            typer.echo(printable(f"{model} ({folder.name}): {state}"))
    if damaged:
        tell("remove the damaged models; they are made anew at their next use")
        raise typer.Exit(1)


@app.command()
def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="HF_DIR",
            exists=True,
            file_okay=False,
            show_default=False,
            help="Folder of the checkpoint.",
        ),
    ],
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="The folder to write, a new one.", show_default=False)
    ],
    bits: Annotated[
        int,
        typer.Option(
            "--bits",
            metavar="N",
            help="Precision of the decoder's weights: 16, 8 or 4; of its head no less than 8.",
        ),
    ] = 8,
    hqq: Annotated[
        bool, typer.Option("--hqq", help="Round by half-quadratic quantisation: slower, with smaller errors.")
    ] = False,
    plugin: Annotated[
        str | None,
        typer.Option("--plugin", metavar="NAME", help="The plugin that exports [default: the one that can]."),
    ] = None,
) -> None:
    """Export a checkpoint of an audio language model.

    Takes the files as the hub has them, and writes them as the plugin's engine loads them.

    Prints what to put into models.toml to use it. Most checkpoints need the extra as2d[export].
    """
    name = plugin or only_plugin_with("as2d_export")
    with stdout_to(2):  # keep stdout for results: converters print to it
        loader.export(name, source, to, bits, hqq=hqq)
    files = sorted(path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file())
    folder, names = json.dumps(str(to.absolute())), json.dumps(files)
    typer.echo(f'[models.{json.dumps(to.name)}]\nplugin = "{name}"\nrole = "any"')
    typer.echo(f'source = {{ kind = "path", directory = {folder}, files = {names} }}')


@app.command()
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME", show_default=False, help=_NAMES)],
) -> None:
    """Delete what the cache holds of models. They are fetched again when next used."""
    for name in [_known(name) for name in names]:
        with shown_progress() as progress:
            removed = weights.remove(name, progress)
        tell(f"{name}: {'removed' if removed else 'was not in the cache'}")


def _row(entry: ModelEntry, *, verbose: bool) -> _Row:
    stored = bool(cache.stored_conversions(entry.name))  # spares asking the plugins of all the others
    size = cache.stored_bytes(entry.name) if stored else 0
    return _Row(
        entry.name,
        entry.role,
        entry.plugin,
        entry.source.kind,
        stored and _is_cached(entry),
        size,
        entry.licence,
        entry.commercial_use,
        _runs_as(entry) if verbose else "",
    )


def _runs_as(entry: ModelEntry) -> str:
    try:
        return loader.runs_as(entry)
    except As2dError as error:  # as in `_is_cached`
        return f"not here: {error.message}"


def _is_cached(entry: ModelEntry) -> bool:
    try:
        return weights.find(entry) is not None
    except As2dError as error:  # of one model; the others are listed all the same
        tell(f"{entry.name}: {error.message}")
        return False


def _known(name: str) -> str:
    """Return `name` if the cache or the registry knows it. Raises `RegistryError`."""
    return name if name in cache.stored_models() else load_registry().model(name).name


def _not_cached(name: str) -> ModelError:
    return ModelError(f"model {name!r} is not in the cache", f"run: as2d models pull {name}")


def _terms(row: _Row) -> str:
    return f"{row.licence or '-'}{'' if row.commercial_use else ' (no commercial use)'}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes else "-"
