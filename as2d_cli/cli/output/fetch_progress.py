"""Shows on stderr what fetching and converting a model is doing; stdout stays free for results."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from as2d_cli.models.fetch import Progress
from as2d_cli.system.printable import printable

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.engine.messages import ModelRef
    from as2d_cli.models.registry import ModelEntry


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


def fetched(
    target: ModelEntry, drafters: Iterable[ModelEntry], threads: int | None
) -> tuple[ModelRef, list[ModelRef]]:
    """Return the models of a command, fetched and converted first where that is needed.

    The target is to have `threads`, None: all CPUs. Raises as `weights.ensure`.
    """
    from as2d_cli.batch.session import DRAFTER_THREADS
    from as2d_cli.engine.messages import ModelRef
    from as2d_cli.models import weights
    from as2d_cli.system.device import usable_threads

    with shown_progress() as progress:
        return (
            ModelRef(target, weights.ensure(target, progress), usable_threads(threads)),
            [ModelRef(one, weights.ensure(one, progress), DRAFTER_THREADS) for one in drafters],
        )


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
