"""Which files a run will write, decided before any work is done.

A name depends only on the inputs and the options, never on what is on the disk; no two inputs share an
output, and no output is an input.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from as2d_cli.errors import As2dError, OutputError, RequestError
from as2d_cli.sources import printable, reason
from as2d_cli.types import Transcript
from as2d_cli.writers import FORMATS, write_atomic


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that one input will give: format -> path."""

    source: Path
    files: tuple[tuple[str, Path], ...] = ()
    error: As2dError | None = None
    """Why they cannot be written, where that is known beforehand."""

    @property
    def existing(self) -> tuple[Path, ...]:
        """Those that are there already."""
        return tuple(path for _, path in self.files if path.exists())

    def write(self, transcript: Transcript, *, overwrite: bool) -> tuple[Path, ...]:
        """Write those that are missing, or all; return which. Raises `OutputError`."""
        due = [(name, path) for name, path in self.files if overwrite or not path.exists()]
        for name, path in due:
            write_atomic(path, FORMATS[name](transcript))
        return tuple(path for _, path in due)


def plan(sources: Sequence[Path], formats: Sequence[str], folder: Path | None) -> list[Outputs]:
    """Return the outputs of each source: `<stem>.<format>` beside it, or in `folder`.

    Where that is taken by an earlier source (or is a source itself), `<name with extension>.<format>`,
    then with a number. The same file given twice is planned once. Missing folders are made. Raises
    `RequestError` if `folder` cannot be written; of a folder beside a source only that source's outputs
    carry the error.
    """
    unique: dict[str, Path] = {}
    for source in sources:
        # Not resolve(): two links to one file are two inputs, with outputs of their own.
        unique.setdefault(os.path.abspath(source), source)  # noqa: PTH100
    return _planned(tuple(unique.values()), formats, folder)


def _planned(unique: Sequence[Path], formats: Sequence[str], folder: Path | None) -> list[Outputs]:
    if not formats:
        return [Outputs(source) for source in unique]
    if folder is not None:
        _check_chosen(folder)
    taken = {_key(source) for source in unique}
    refused: dict[Path, OutputError | None] = {}
    planned = []
    for source in unique:
        place = folder or source.parent
        if place not in refused:
            refused[place] = _refusal(place)
        stem = _free_stem(source, place, formats, taken)
        files = tuple((name, place / f"{stem}.{name}") for name in formats)
        taken.update(_key(path) for _, path in files)
        planned.append(Outputs(source, files, refused[place]))
    return planned


def _free_stem(source: Path, place: Path, formats: Sequence[str], taken: set[str]) -> str:
    numbered = (f"{source.name}.{number}" for number in count(2))
    return next(
        stem
        for stem in chain((source.stem, source.name), numbered)
        if not any(_key(place / f"{stem}.{name}") in taken for name in formats)
    )


def _key(path: Path) -> str:
    """Return what is equal for names of one file, also where the file system ignores case."""
    return os.path.realpath(path).casefold()


def _check_chosen(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"{printable(str(folder))}: cannot be made: {reason(error)}", "-o needs a folder you may write to"
        ) from error
    if refusal := _refusal(folder):
        raise RequestError(refusal.message, "-o needs a folder you may write to")


def _refusal(folder: Path) -> OutputError | None:
    """Return why nothing can be written into `folder`; found out by writing, as permissions can lie."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return OutputError(
            f"{printable(str(folder))}: cannot be written to: {reason(error)}", "-o chooses another folder"
        )
