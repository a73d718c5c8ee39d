"""`as2d bench --shape`: what a device would gain with a model, before its weights are downloaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from as2d_cli.cli.output.messages import tell
from as2d_cli.domain.errors import RequestError

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.engine.messages import ModelRef
    from as2d_cli.models.registry import ModelEntry, PairEntry, Registry


def bench_shape(
    name: str, drafters: Sequence[str], threads: int | None, output: Path | None, *, native: bool
) -> None:
    """Measure the pair whose target is the shape of `name`, or it with other drafters; print results.

    With `native`, recorded windows are decoded as well, the way that is projected to be the fastest.

    Raises `RequestError` for an unknown shape, `ModelError` if the models cannot be made or measured.
    """
    from as2d_cli.bench.acceptance import recorded_acceptance
    from as2d_cli.bench.report.shape_report import native_report, record, report
    from as2d_cli.bench.run.native import run_natively
    from as2d_cli.bench.run.provenance import provenance
    from as2d_cli.bench.run.shape import measure_shape, project
    from as2d_cli.models.registry import load_registry
    from as2d_cli.system.atomic_files import write_text_atomic

    registry = load_registry()
    pair = _pair(name, registry)
    target, *others = [registry.model(one) for one in (pair.target, *(drafters or [pair.drafter]))]
    acceptance, records = recorded_acceptance(), []
    command = " ".join(["as2d", *sys.argv[1:]])
    with _made(target, others, threads) as (target_model, drafter_models):
        for drafter in drafter_models:
            origin = provenance(target_model, [drafter], command)
            measured = measure_shape(target_model, drafter, tell)
            projection = project(measured, acceptance)
            for line in report((target_model, drafter), measured, projection, acceptance, origin):
                typer.echo(line)
            laps = []
            if native:
                way = max((way for way in projection.ways if way.cap), key=lambda way: way.speedup)
                costs = next(own.costs for own in measured if own.costs.decode_threads == way.threads)
                laps = run_natively(target_model, drafter, way, costs, acceptance, tell)
                for line in native_report(way, laps):
                    typer.echo(line)
            records.append(record(measured, projection, laps, origin))
    if output is not None:
        write_text_atomic(output.resolve(), "".join(records))


def _pair(name: str, registry: Registry) -> PairEntry:
    shapes = {registry.model(pair.target).shape_of: pair for pair in registry.pairs.values()}
    if name not in shapes:
        known = ", ".join(filter(None, shapes))
        raise RequestError(f"there is no shape called {name!r}", f"choose one of: {known}")
    return shapes[name]


@contextmanager
def _made(
    target: ModelEntry, drafters: Sequence[ModelEntry], threads: int | None
) -> Iterator[tuple[ModelRef, list[ModelRef]]]:
    """Make the models, the target's with `threads`; what was not there before is removed at the end."""
    from as2d_cli.cli.output.fetch_progress import fetched
    from as2d_cli.models import weights

    shapes = [entry for entry in (target, *drafters) if entry.shape_of]
    new = [entry.name for entry in shapes if weights.find(entry) is None]
    try:
        yield fetched(target, drafters, threads)
    finally:
        for name in new:
            weights.remove(name)
