"""Tables on stdout: columns of equal width, as they are, without markup."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of equally many cells, the first of them the headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
