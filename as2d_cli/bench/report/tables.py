"""The results as text for a terminal or a document: a view of the trials, nothing that is not in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from as2d_cli.bench.modes import AUTO, TARGET_ONLY
from as2d_cli.bench.report.identity import first_difference
from as2d_cli.bench.report.summary import TOLERANCE, Summary, summarise
from as2d_cli.bench.report.wer import MISSING, NORMALISERS, word_errors
from as2d_cli.bench.trials import Results, Staircase

_SHARES = ("encode", "verify", "control", "draft", "wait")
Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Heads and lines."""


def report(results: Results) -> Iterator[str]:
    """Yield the lines of everything that is known of a run."""
    yield from origin(results.provenance)
    summaries = summarise(results.trials)
    first = summaries[0]
    yield (
        f"{first.windows} windows, {first.audio_s / first.repeats / 60:.1f} min of audio, "
        f"{first.repeats} repeats; speedups are sums over sums, against {first.mode}"
    )
    yield ""
    for title, table in titled_tables(summaries):
        yield title
        yield from aligned(table)
        yield ""
    yield from _auto_lines(results.provenance, summaries)
    yield from _word_errors(results)
    yield from _oracle_lines(results)
    for note in results.notes:
        yield f"note: {note}"
    difference = first_difference(results.trials)
    yield f"DIFFERENT TEXT: {difference}" if difference else "all modes gave the same tokens in every window"


def origin(provenance: dict[str, Any]) -> Iterator[str]:
    """Yield where the numbers come from."""
    target, drafters = provenance["target"], provenance["drafters"]
    names = ", ".join(f"{drafter['name']} ({drafter['threads']} threads)" for drafter in drafters)
    commit = f" at {provenance['commit']}" if provenance["commit"] else ""
    yield ", ".join([f"as2d {provenance['as2d']}{commit}", *runtimes(provenance), provenance["utc"]])
    yield f"{provenance['device']}, {provenance['os']}, load {provenance['load']} at the start"
    yield f"target {target['name']} ({target['threads']} threads), drafters {names or 'none'}"
    yield f"command: {provenance['command']}"
    yield f"not counted: loading {provenance['load_s']:.1f} s, reading audio {provenance['read_s']:.1f} s"


def runtimes(provenance: Mapping[str, Any]) -> list[str]:
    """Return the runtimes of the models with their versions."""
    return [f"{name} {version}" for name, version in provenance["runtimes"].items()]


def _auto_lines(provenance: dict[str, Any], summaries: Sequence[Summary]) -> Iterator[str]:
    """Yield what was predicted of the automatic choice beside what it came to."""
    budget = provenance["budget"]
    threads = f", passes on {budget['decode_threads']} threads" if budget["decode_threads"] else ""
    chosen = f"{budget['drafter']}, at most {budget['cap']} draft tokens per step{threads}"
    for summary in summaries:
        if summary.mode.split()[0] == AUTO:
            yield (
                f"{AUTO} chose {chosen if budget['drafter'] else 'no drafter'}: predicted "
                f"{1 / (1 - budget['saving']):.2f}x, measured {summary.batch_speedup:.2f}x"
            )
            if not budget["drafter"]:
                yield f"its steps are {TARGET_ONLY}'s own: whatever the two differ by is this machine's noise"


def titled_tables(summaries: Sequence[Summary]) -> Iterator[tuple[str, Table]]:
    """Yield what modes came to: each table and what it is of."""
    yield (
        "whole batch: windows in blocks, drafts may run ahead into the next windows",
        _batch_table(summaries),
    )
    yield (
        "window by window: least latency over the repeats, in the target's process",
        _window_table(summaries),
    )
    yield "drafts", _draft_table(summaries)
    yield "steps by committed tokens", _histogram_table(summaries)


def _batch_table(summaries: Sequence[Summary]) -> Table:
    """Return throughput of whole blocks."""
    heads = ("mode", "speedup", "by repeat", "RTFx", "tokens/s", *_SHARES, "peak MB")
    lines = [
        (
            summary.mode,
            f"{summary.batch_speedup:.2f}x",
            f"{min(summary.batch_speedups):.2f}-{max(summary.batch_speedups):.2f}",
            f"{summary.rtfx:.1f}",
            f"{summary.tokens_per_s:.1f}",
            *(f"{getattr(summary.shares, name):.1%}" for name in _SHARES),
            f"{summary.peak_bytes / 1e6:.0f}" if summary.peak_bytes is not None else "-",
        )
        for summary in summaries
    ]
    return heads, lines


def _window_table(summaries: Sequence[Summary]) -> Table:
    """Return latencies of windows."""
    heads = ("mode", "speedup", "slower", f"slower >{TOLERANCE:.0%}", "p50 s", "p90 s", "p99 s")
    lines = [
        (
            summary.mode,
            f"{summary.window_speedup:.2f}x",
            f"{summary.slower:.1%}",
            f"{summary.clearly_slower:.1%}",
            *(f"{latency:.3f}" for latency in summary.latency_s),
        )
        for summary in summaries
    ]
    return heads, lines


def _draft_table(summaries: Sequence[Summary]) -> Table:
    """Return what became of drafts."""
    heads = ("mode", "tokens/step", "acceptance", "used of drafted", "lead at start")
    lines = [
        (
            summary.mode,
            f"{summary.tokens_per_step:.2f}",
            f"{summary.acceptance:.1%}" if summary.proposed else "-",
            f"{summary.utilisation:.1%}" if summary.drafted else "-",
            f"{summary.lead:.1f}",
        )
        for summary in summaries
    ]
    return heads, lines


_BINS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 1 << 30))


def _histogram_table(summaries: Sequence[Summary]) -> Table:
    """Return the share of steps that committed so many tokens."""
    heads = ("mode", *(_bin_name(low, high) for low, high in _BINS))
    lines = []
    for summary in summaries:
        total = sum(summary.histogram.values()) or 1
        counts = [
            sum(count for tokens, count in summary.histogram.items() if low <= tokens <= high)
            for low, high in _BINS
        ]
        lines.append((summary.mode, *(f"{count / total:.1%}" for count in counts)))
    return heads, lines


def _bin_name(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low}-{high}" if high < 1 << 30 else f"{low}+"


def _word_errors(results: Results) -> Iterator[str]:
    if not results.references:
        return
    first = results.trials[0].mode
    try:
        errors = word_errors([trial for trial in results.trials if trial.mode == first], results.references)
    except ImportError:
        yield MISSING
        return
    if errors is not None:
        yield f"word error rate {errors.rate:.2%} over {errors.files} files ({NORMALISERS})"


def _oracle_lines(results: Results) -> Iterator[str]:
    """Yield what the replay says, and how well it agrees with the run."""
    if not results.oracle:
        return
    yield ""
    yield "replay of the recorded windows on the measured costs, each window from a standing start"
    yield from aligned(oracle_table(results))
    for staircase in results.staircases:
        yield from _staircase(staircase)
    yield ""


def oracle_table(results: Results) -> Table:
    """Return the replayed choices."""
    heads = ("choice", "speedup", "of oracle", "slower", "replayed s", "native s", "replay off by")
    lines = [
        (
            row.choice,
            f"{row.speedup:.3f}x",
            f"{row.of_oracle:.2%}",
            f"{row.slower:.1%}",
            f"{row.replay_ms / 1e3:.2f}",
            f"{row.native_ms / 1e3:.2f}" if row.native_ms is not None else "-",
            f"{row.replay_ms / row.native_ms - 1:+.1%}" if row.native_ms else "-",
        )
        for row in results.oracle
    ]
    return heads, lines


def _staircase(staircase: Staircase) -> Iterator[str]:
    def cells(table: dict[int, float]) -> str:
        return " ".join(f"{rows}:{ms:.1f}" for rows, ms in sorted(table.items()))

    yield f"pass by rows, ms ({staircase.drafter} idle): {cells(staircase.idle_ms)}"
    yield f"pass by rows, ms ({staircase.drafter} at work): {cells(staircase.busy_ms)}"


def aligned(table: Table) -> Iterator[str]:
    """Yield the lines of a table with its columns one below the other."""
    heads, lines = table
    widths = [max(len(line[column]) for line in (heads, *lines)) for column in range(len(heads))]
    for line in (heads, *lines):
        first, *rest = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join([first.strip().ljust(widths[0]), *rest]).rstrip()
