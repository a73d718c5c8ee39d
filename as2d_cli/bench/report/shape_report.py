"""A projection as text for a terminal or a document, and as a JSON record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from as2d_cli.bench.acceptance import Acceptance
from as2d_cli.bench.projection import NativeLap, Projected, Projection, ShapeCosts
from as2d_cli.bench.report.tables import Table, aligned, runtimes
from as2d_cli.bench.trials import dumps
from as2d_cli.engine.measure import DraftCosts, TargetCosts
from as2d_cli.engine.messages import ModelRef


def report(
    models: Sequence[ModelRef],
    measured: Sequence[ShapeCosts],
    projection: Projection,
    acceptance: Acceptance,
    provenance: Mapping[str, Any],
) -> Iterator[str]:
    """Yield the lines of a projection for `models`, a target and its drafter."""
    yield from _origin(models, measured, provenance)
    yield from _warning(models[0], measured[0], projection, acceptance)
    yield ""
    yield "one pass of the target, ms, by rows"
    yield from aligned(_steps(measured))
    yield ""
    yield from aligned(_parts(measured))
    yield ""
    yield from aligned(_ways(projection))
    yield (
        f"encoder and prefill are {projection.opening:.0%} of target-only's time: "
        f"if decoding took none, {1 / projection.opening:.2f}x"
    )
    chosen = projection.chosen
    yield f"the profile's choice: {_name(chosen)}, {chosen.speedup:.2f}x; {projection.reason}"
    yield from _needs(models, measured[0])


def native_report(way: Projected, laps: Sequence[NativeLap]) -> Iterator[str]:
    """Yield the lines of native laps of the `way` beside target-only on all threads."""
    speedups = [lap.speedup for lap in laps]
    plain_s, drafted_s = (
        median(getattr(lap, name) / lap.windows for lap in laps) for name in ("plain_s", "drafted_s")
    )
    yield (
        f"natively, {laps[0].windows} windows, {len(laps)} laps in turn: target-only on all threads "
        f"{plain_s:.2f} s/window, {_name(way)} {drafted_s:.2f} s/window: {median(speedups):.2f}x "
        f"(laps {min(speedups):.2f}x to {max(speedups):.2f}x)"
    )


def record(
    measured: Sequence[ShapeCosts],
    projection: Projection,
    laps: Sequence[NativeLap],
    provenance: dict[str, Any],
) -> str:
    """Return everything as one JSON line."""
    values = {
        "measured": [asdict(own) for own in measured],
        "projection": asdict(projection),
        "native": [asdict(lap) for lap in laps],
    }
    return dumps("projection", values, provenance)


def _origin(
    models: Sequence[ModelRef], measured: Sequence[ShapeCosts], provenance: Mapping[str, Any]
) -> Iterator[str]:
    commit = f" at {provenance['commit']}" if provenance["commit"] else ""
    target, drafter = models
    yield ", ".join([f"as2d {provenance['as2d']}{commit}", *runtimes(provenance), provenance["utc"]])
    yield f"{provenance['device']}, load {provenance['load']} at the start"
    yield f"target {target.entry.name}, drafter {drafter.entry.name} ({drafter.threads} threads)"
    for own in measured:
        took = f"loaded in {own.load_s:.0f} s, measured in {own.measure_s:.0f} s"
        yield f"target on {own.costs.decode_threads} threads: {took}"
    yield f"command: {provenance['command']}"
    yield ""


def _warning(
    target: ModelRef, first: ShapeCosts, projection: Projection, acceptance: Acceptance
) -> Iterator[str]:
    model = target.entry.shape_of
    yield f"PROJECTION: the costs are of random weights in the shape of {model}, the text is not this model's"
    yield (
        f"replayed: {projection.windows} windows of English that {acceptance.target} wrote and "
        f"{acceptance.drafter} drafted"
    )
    yield (
        f"opening a window was measured on {first.target_share:.0%} of its audio (drafter: "
        f"{first.drafter_share:.0%}) and scaled up in proportion"
    )


def _sides(own: ShapeCosts) -> tuple[tuple[str, TargetCosts, DraftCosts], ...]:
    costs, threads = own.costs, f"{own.costs.decode_threads} threads"
    return (
        (f"{threads}, each alone", costs.target, costs.drafter),
        (f"{threads}, both at work", costs.target_busy, costs.drafter_busy),
    )


def _steps(measured: Sequence[ShapeCosts]) -> Table:
    lines = [
        (name, *(f"{ms:.0f}" for ms in target.step_ms().values()))
        for own in measured
        for name, target, _ in _sides(own)
    ]
    return ("target on", *map(str, measured[0].costs.target.step_ms())), lines


def _parts(measured: Sequence[ShapeCosts]) -> Table:
    lines = [
        (name, f"{target.encode_ms / 1e3:.2f}", f"{drafter.encode_ms / 1e3:.2f}", f"{drafter.token_ms:.1f}")
        for own in measured
        for name, target, drafter in _sides(own)
    ]
    return ("target on", "encoder + prefill, s", "drafter's, s", "drafter, ms/token"), lines


def _name(way: Projected) -> str:
    mode = f"as2d-{way.cap}" if way.cap else "target-only"
    return f"{mode}, target on {way.threads}"


def _ways(projection: Projection) -> Table:
    lines = [
        (
            _name(way),
            f"{way.window_s:.2f}",
            f"{way.speedup:.2f}x",
            f"{way.decode_speedup:.2f}x",
            f"{way.tokens_per_step:.2f}",
            f"{way.slower} of {projection.windows}",
        )
        for way in projection.ways
    ]
    return ("mode", "s/window", "speedup", "decoding only", "tokens/step", "slower"), lines


def _needs(models: Sequence[ModelRef], first: ShapeCosts) -> Iterator[str]:
    peaks = (first.costs.target.peak_bytes, first.costs.drafter.peak_bytes)
    for model, peak in zip(models, peaks, strict=True):
        disk = sum(path.stat().st_size for path in Path(model.path).rglob("*") if path.is_file())
        yield f"{model.entry.name} needs {disk / 1e9:.1f} GB on disk, {peak / 1e9:.1f} GB of memory"
