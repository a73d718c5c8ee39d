"""`as2d bench`: every way to decode, side by side on the same windows."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.cli.commands.catalog import sub_command
from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.output.messages import tell
from as2d_cli.domain.errors import OutputError, RequestError

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.bench.rows import Results
    from as2d_cli.bench.run.run import BenchRequest

app = sub_command()


@app.command()
def bench(  # noqa: PLR0913, PLR0917 - one parameter per option is how typer declares them
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH", show_default=False, help="Audio files, or folders with a manifest.jsonl."
        ),
    ] = None,
    pair: Annotated[
        str | None, typer.Option(metavar="NAME", help="A pair of models.toml [default: the first].")
    ] = None,
    drafter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Drafter, instead of the pair's; may be given again."),
    ] = None,
    modes: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Modes beside target-only, with commas between [default: all]."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="How often each window is decoded.")] = 3,
    limit_windows: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Measure on the first N windows only.")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language", "-l", metavar="CODE|auto", help="Spoken language [default: the manifest's]."
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads of the target [default: all CPUs].")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Keep every measurement here (JSONL)."),
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Show kept measurements; measure nothing.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with tables and plots.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the time line of an AS2D run for Perfetto.")
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Project what this device would gain with such a model, from random weights of its shape.",
        ),
    ] = None,
    oracle: Annotated[
        bool, typer.Option("--oracle/--no-oracle", help="Replay with every choice to find the best one.")
    ] = True,
) -> None:
    """Decode the same windows in every mode and compare: speed, latency, drafts, text."""
    for path in (output, html, trace):
        if path is None:  # else hours may pass before it is written
            continue
        if path.is_dir() or not path.parent.is_dir():
            wrong = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            raise OutputError(f"{path}: cannot be written: {wrong}")
        if path is not output and path.exists() and not path.is_file():
            raise OutputError(f"{path}: cannot be written: it is a pipe or a device")
    if shape is not None:
        if paths or from_file is not None:
            raise RequestError("--shape replays recorded speech: it takes no files", "leave them out")
        from as2d_cli.cli.commands.bench_shape import bench_shape

        bench_shape(shape, drafter or (), threads, output)
        raise typer.Exit
    if from_file is not None:
        if paths:
            raise RequestError("--from measures nothing, so it takes no files", "leave out one of the two")
        raise typer.Exit(_show_kept(from_file, html, trace))
    request = _request(paths, pair, drafter, modes, threads)
    request = replace(
        request, repeats=repeats, limit=limit_windows, language=_language(language), oracle=oracle
    )
    raise typer.Exit(_show(_measure(request, output), html, trace))


def _request(
    paths: list[Path] | None,
    pair: str | None,
    drafters: list[str] | None,
    modes: str | None,
    threads: int | None,
) -> BenchRequest:
    """Find the models. Raises `RequestError`, or `RegistryError` for an unknown model."""
    from as2d_cli.bench.modes import choose_modes
    from as2d_cli.bench.run.run import BenchRequest
    from as2d_cli.cli.output.fetch_progress import fetched
    from as2d_cli.models.registry import load_registry

    if not paths:
        raise RequestError(
            "there is nothing to measure on", "give audio files, or folders with a manifest.jsonl"
        )
    registry = load_registry()
    chosen = registry.pair(pair)
    names = list(dict.fromkeys(drafters or [chosen.drafter]))
    listed = tuple(name.strip() for name in modes.split(",") if name.strip()) if modes is not None else None
    choose_modes(listed, names)  # a typing error is to be told before anything is fetched
    for name in names:
        if not registry.model(name).fits("drafter"):
            raise RequestError(f"model {name!r} cannot draft", "choose another --drafter")
    target, ahead = fetched(registry.model(chosen.target), map(registry.model, names), threads)
    command = " ".join(["as2d", *sys.argv[1:]])
    return BenchRequest(tuple(paths), target, tuple(ahead), listed, command=command)


def _language(text: str | None) -> str | None:
    """Return the code, or None for what the manifest says; "auto" is no language of any model."""
    from as2d_cli.domain.languages import AUTO, language_code

    return None if text is None else language_code(text) or AUTO


def _measure(request: BenchRequest, output: Path | None) -> Results:
    from as2d_cli.bench.run.run import Hooks, bench

    if output is None:
        return bench(request, Hooks(lambda line: None, tell, _progress))
    try:
        file = open(output, "w", encoding="utf-8", opener=_at_once)  # noqa: SIM115 - used below
    except OSError as error:
        raise OutputError(f"{output}: cannot be written: {error}") from error
    with file:
        return bench(request, Hooks(file.write, tell, _progress))


def _at_once(path: str, flags: int) -> int:
    """Open a file, or a pipe if somebody reads it: nobody is waited for."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(descriptor, True)
    return descriptor


def _progress(done: int, total: int) -> None:
    tell(f"{done} of {total} blocks")


def _show_kept(path: Path, html: Path | None, trace: Path | None) -> ExitCode:
    """Show what a run has kept. Raises `RequestError` for what no run of this version writes."""
    from as2d_cli.bench.rows import read_results

    results = read_results(path)
    try:
        return _show(results, html, trace)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise RequestError(
            f"{path}: is no result of this version's bench: {type(error).__name__}: {error}",
            "measure again, with -o",
        ) from error


def _show(results: Results, html: Path | None, trace: Path | None) -> ExitCode:
    from as2d_cli.bench.report.identity import first_difference
    from as2d_cli.bench.report.page import page
    from as2d_cli.bench.report.tables import report
    from as2d_cli.bench.report.trace import trace_json
    from as2d_cli.system.atomic_files import write_text_atomic

    # before the report, which whoever reads it may break off
    for path, write in ((html, page), (trace, trace_json)):
        if path is not None:
            write_text_atomic(path.resolve(), write(results))  # /dev/stdout is a link, which must stay
    for line in report(results):
        typer.echo(line)
    difference = first_difference(results.rows)
    if difference is not None:
        tell(str(difference))
        return ExitCode.SOME_FAILED
    return ExitCode.OK
