"""Tables on stdout: columns of equal width, without markup or anything that a terminal obeys."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from as2d_cli.system.printable import printable


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of equally many cells, the first of them the headings."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
