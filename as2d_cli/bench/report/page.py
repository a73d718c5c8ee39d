"""One self-contained page of a run: tables and plots, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from as2d_cli.bench.report import tables
from as2d_cli.bench.report.identity import first_difference
from as2d_cli.bench.report.plots import lanes_plot, shown_window, speedup_plot, staircase_plot
from as2d_cli.bench.report.summary import summarise
from as2d_cli.bench.report.svg import element, text
from as2d_cli.bench.trials import Results

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --paper: #fff; --quiet: #5b6475; --rule: #d8dce5;
  --target: #3b6fd4; --hit: #1f9d68; --miss: #d98324; --draft: #8c6bd1; --slower: #cf3f4f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --paper: #14171f; --quiet: #9aa3b5;
  --rule: #2d3340; --target: #7ba3f5; --hit: #4fcf97; --miss: #eda657; --draft: #b39aec;
  --slower: #f0727f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; }
p, li { color: var(--quiet); } .bad { color: var(--slower); font-weight: 600; } .good { color: var(--hit); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--ink); }
svg .grid { stroke: var(--rule); } svg .one { stroke: var(--ink); stroke-width: 1.5; }
svg .faster { fill: var(--hit); fill-opacity: .55; } svg .slower { fill: var(--slower); fill-opacity: .8; }
svg .pooled { stroke: var(--ink); stroke-width: 3; }
svg .encode { fill: var(--target); fill-opacity: .35; }
svg .step { fill: var(--target); stroke: var(--paper); }
svg .hit { fill: var(--hit); } svg .miss { fill: var(--miss); }
svg .draft { fill: var(--draft); fill-opacity: .3; } svg .token { stroke: var(--draft); stroke-width: 1.2; }
svg .stairs { fill: none; stroke-width: 2.2; } svg .stairs.idle { stroke: var(--target); }
svg .stairs.busy { stroke: var(--miss); stroke-dasharray: 6 3; }
svg text.idle { fill: var(--target); } svg text.busy { fill: var(--miss); }
"""


def page(results: Results) -> str:
    """Return the page as HTML."""
    return (
        "<!DOCTYPE html>\n"
        + element(
            "html",
            element(
                "head",
                '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
                element("title", "as2d bench"),
                element("style", _STYLE),
            ),
            element("body", *_body(results)),
            lang="en",
        )
        + "\n"
    )


def _body(results: Results) -> Iterator[str]:
    yield element("h1", "as2d bench")
    for line in tables.origin(results.provenance):
        yield element("p", text(line))
    difference = first_difference(results.trials)
    if difference:
        yield element("p", text(f"Different text: {difference}"), class_="bad")
    else:
        yield element("p", "All modes gave the same tokens in every window.", class_="good")
    for title, table in tables.titled_tables(summarise(results.trials)):
        yield element("h2", text(title[0].upper() + title[1:]))
        yield _table(table)
    if results.oracle:
        yield element("h2", "Replay of the recorded windows, each from a standing start")
        yield _table(tables.oracle_table(results))
    yield from _plots(results)
    yield element("h2", "Notes")
    yield element("ul", *(element("li", text(note)) for note in results.notes))


def _plots(results: Results) -> Iterator[str]:
    shown = shown_window(results.trials)
    where = f": {shown.file} at {shown.start_s:.1f} s" if shown else ""
    for name, title, caption, plot in (
        (
            "speedups",
            "Speedup of each window",
            "One dot per window; red: slower than the target alone. The bar is the pooled speedup.",
            speedup_plot(results.trials),
        ),
        (
            "lanes",
            f"Time line of one window{where}",
            "Target: encoding, then one box per pass: green with draft tokens that were right, orange with "
            "wrong ones only, blue without any. Drafter: one line per draft token.",
            lanes_plot(results.trials),
        ),
        (
            "staircase",
            "Cost of a target pass by rows",
            "As measured for the profile of this device.",
            staircase_plot(results.staircases),
        ),
    ):
        parts = (element("h2", text(title)), element("p", text(caption)), plot)
        yield element("section", *parts, id=name)


def _table(table: tables.Table) -> str:
    heads, lines = table
    rows = [element("tr", *(element("th", text(head)) for head in heads))]
    rows += [element("tr", *(element("td", text(cell)) for cell in line)) for line in lines]
    return element("div", element("table", *rows), class_="wide")
