"""Shows on stderr what fetching and converting a model is doing; stdout stays free for results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from as2d_cli.fetch import Progress
from as2d_cli.printable import printable


@contextmanager
def shown_progress(quiet: bool = False, bar: bool = True) -> Iterator[Progress]:
    """Give a progress callback: a bar on a terminal, one line per stage elsewhere, nothing if `quiet`.

    Without `bar`, a terminal gets the lines, too.
    """
    if quiet:
        yield lambda stage, done, total: None
    elif bar and sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        yield _lines()


def _lines() -> Progress:
    shown: set[str] = set()

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage not in shown:
            shown.add(stage)
            sys.stderr.write(f"{printable(stage)}\n")

    return progress


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console  # not at the top: rich is slow to import
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task, shown = None, ""

        def progress(stage: str, done: int, total: int | None) -> None:
            nonlocal task, shown
            if task is None or stage != shown:
                if task is not None:
                    bars.remove_task(task)  # a new one, since rich cannot take a known total back
                task, shown = bars.add_task(printable(stage), total=total), stage
            bars.update(task, completed=done, total=total)

        yield progress
