"""`as2d bench`: every way to decode, side by side on the same windows."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.cli.commands.catalog import sub_command
from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.options.parameters import Options
from as2d_cli.cli.options.settings import with_options
from as2d_cli.cli.output.messages import tell
from as2d_cli.domain.errors import OutputError, RequestError

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.bench.run.benchmark import BenchRequest
    from as2d_cli.bench.trials import Results


@dataclass(frozen=True, kw_only=True)
class BenchOptions(Options):
    """What to measure and what to make of it; none of these is a setting."""

    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH", show_default=False, help="Audio files, or folders with a manifest.jsonl."
        ),
    ] = None
    pair: Annotated[
        str | None, typer.Option(metavar="NAME", help="A pair of models.toml [default: the first].")
    ] = None
    drafter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Drafter, instead of the pair's; may be given again."),
    ] = None
    modes: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Modes beside target-only, with commas between [default: all]."),
    ] = None
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="How often each window is decoded.")] = 3
    limit_windows: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Measure on the first N windows only.")
    ] = None
    language: Annotated[
        str | None,
        typer.Option(
            "--language", "-l", metavar="CODE|auto", help="Spoken language [default: the manifest's]."
        ),
    ] = None
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads of the target [default: all CPUs].")
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Keep every measurement here (JSONL)."),
    ] = None
    from_file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Show kept measurements; measure nothing.")
    ] = None
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with tables and plots.")] = (
        None
    )
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the time line of an AS2D run for Perfetto.")
    ] = None
    shape: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Project what this device would gain with such a model, from random weights of its shape.",
        ),
    ] = None
    native: Annotated[
        bool, typer.Option("--native", help="Beside a projection, decode recorded windows natively.")
    ] = False
    oracle: Annotated[
        bool, typer.Option("--oracle/--no-oracle", help="Replay with every choice to find the best one.")
    ] = True


def bench(options: BenchOptions) -> ExitCode:
    """Decode the same windows in every mode and compare: speed, latency, drafts, text."""
    _check_writable(options)
    if options.shape is not None:
        return _project(options, options.shape)
    if options.from_file is not None:
        return _show_kept(options, options.from_file)
    return _show(_measure(_request(options), options.output), options)


app = sub_command()
app.command()(with_options(bench, BenchOptions))


def _check_writable(options: BenchOptions) -> None:
    """Raise `OutputError` for a file that cannot be written: hours may pass before it is."""
    for path in (options.output, options.html, options.trace):
        if path is None:
            continue
        if path.is_dir() or not path.parent.is_dir():
            wrong = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            raise OutputError(f"{path}: cannot be written: {wrong}")
        if path is not options.output and path.exists() and not path.is_file():
            raise OutputError(f"{path}: cannot be written: it is a pipe or a device")


def _project(options: BenchOptions, shape: str) -> ExitCode:
    """Measure a shape. Raises `RequestError` for an unknown one, or for files to measure on."""
    if options.paths or options.from_file is not None:
        raise RequestError("--shape replays recorded speech: it takes no files", "leave them out")
    from as2d_cli.cli.commands.bench_shape import bench_shape

    bench_shape(shape, options.drafter or (), options.threads, options.output, native=options.native)
    return ExitCode.OK


def _request(options: BenchOptions) -> BenchRequest:
    """Find the models. Raises `RequestError`, or `RegistryError` for an unknown model."""
    from as2d_cli.bench.modes import choose_modes
    from as2d_cli.bench.run.benchmark import BenchRequest
    from as2d_cli.cli.output.fetch_progress import fetched
    from as2d_cli.models.registry import load_registry

    if not options.paths:
        raise RequestError(
            "there is nothing to measure on", "give audio files, or folders with a manifest.jsonl"
        )
    registry = load_registry()
    pair = registry.pair(options.pair)
    names = list(dict.fromkeys(options.drafter or [pair.drafter]))
    modes = _listed(options.modes)
    choose_modes(modes, names)  # a typing error is to be told before anything is fetched
    for name in names:
        if not registry.model(name).fits("drafter"):
            raise RequestError(f"model {name!r} cannot draft", "choose another --drafter")
    target, drafters = fetched(registry.model(pair.target), map(registry.model, names), options.threads)
    return BenchRequest(
        paths=tuple(options.paths),
        target=target,
        drafters=tuple(drafters),
        modes=modes,
        repeats=options.repeats,
        limit=options.limit_windows,
        language=_language(options.language),
        oracle=options.oracle,
        command=" ".join(["as2d", *sys.argv[1:]]),
    )


def _listed(text: str | None) -> tuple[str, ...] | None:
    """Return the names in a list with commas between; None for no list."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _language(text: str | None) -> str | None:
    """Return the code, or None for what the manifest says; "auto" is no language of any model."""
    from as2d_cli.domain.languages import AUTO, language_code

    return None if text is None else language_code(text) or AUTO


def _measure(request: BenchRequest, output: Path | None) -> Results:
    from as2d_cli.bench.run.benchmark import Hooks, run_benchmark

    if output is None:
        return run_benchmark(request, Hooks(lambda line: None, tell, _progress))
    try:
        file = open(output, "w", encoding="utf-8", opener=_at_once)  # noqa: SIM115 - used below
    except OSError as error:
        raise OutputError(f"{output}: cannot be written: {error}") from error
    with file:
        return run_benchmark(request, Hooks(file.write, tell, _progress))


def _at_once(path: str, flags: int) -> int:
    """Open a file, or a pipe if somebody reads it: nobody is waited for."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(descriptor, True)
    return descriptor


def _progress(done: int, total: int) -> None:
    tell(f"{done} of {total} blocks")


def _show_kept(options: BenchOptions, path: Path) -> ExitCode:
    """Show what a run has kept. Raises `RequestError` for what no run of this version writes."""
    if options.paths:
        raise RequestError("--from measures nothing, so it takes no files", "leave out one of the two")
    from as2d_cli.bench.trials import read_results

    results = read_results(path)
    try:
        return _show(results, options)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise RequestError(
            f"{path}: is no result of this version's bench: {type(error).__name__}: {error}",
            "measure again, with -o",
        ) from error


def _show(results: Results, options: BenchOptions) -> ExitCode:
    from as2d_cli.bench.report.identity import first_difference
    from as2d_cli.bench.report.page import page
    from as2d_cli.bench.report.tables import report
    from as2d_cli.bench.report.trace import trace_json
    from as2d_cli.system.atomic_files import write_text_atomic

    # before the report, which whoever reads it may break off
    for path, write in ((options.html, page), (options.trace, trace_json)):
        if path is not None:
            write_text_atomic(path.resolve(), write(results))  # /dev/stdout is a link, which must stay
    for line in report(results):
        typer.echo(line)
    difference = first_difference(results.trials)
    if difference is not None:
        tell(str(difference))
        return ExitCode.SOME_FAILED
    return ExitCode.OK
