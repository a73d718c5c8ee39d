"""Which files a run will write, decided before any work is done, and which of them are still to be made.

No two inputs share an output, no output is an input, and none is what another input once gave. Names depend
on the inputs, the options and, for the last point, on what is recorded of earlier runs; so a rerun, also one
with fewer or more inputs, finds its own outputs again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from pathlib import Path

from as2d_cli.batch.inputs import Input
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.resume import (
    Content,
    Record,
    State,
    owner,
    record_of,
    remember,
    source_key,
    state_of,
    sweep,
    sweep_records,
)
from as2d_cli.batch.work import FileOutcome
from as2d_cli.domain.errors import As2dError, AudioError, OutputError, RequestError, reason
from as2d_cli.domain.types import Transcript
from as2d_cli.system.addresses import absolute, address, flaw, local, located
from as2d_cli.system.atomic_files import write_text_atomic
from as2d_cli.system.printable import printable
from as2d_cli.system.remote_files import listed, reach, read_only
from as2d_cli.transcripts.formats import FORMATS

_MOST_NAME_BYTES = 255
_HINT = "-o needs a folder you may write to"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that one input will give: format -> path."""

    input: Input
    files: tuple[tuple[str, Path], ...] = ()
    error: As2dError | None = None
    """Why they cannot be written, where that is known beforehand."""

    @property
    def source(self) -> Path:
        """What the input goes by."""
        return self.input.path

    def states(self, recipes: Mapping[str, str]) -> dict[str, State]:
        """Return what each format's file is found to be, if it is to be made by `recipes[format]`."""
        return {name: state_of(path, self.input, recipes[name]) for name, path in self.files}

    def write(
        self, transcript: Transcript, due: Iterable[str], recipes: Mapping[str, str], content: Content | None
    ) -> tuple[Path, ...]:
        """Write the files of the formats `due`; return which. Raises `OutputError`.

        What they are made of is recorded, unless it is not known (`content` is None).
        """
        files = [(name, path) for name, path in self.files if name in due]
        for name, path in files:
            text = FORMATS[name](transcript)
            if content is not None:
                with suppress(OSError):  # without a record a rerun leaves the file alone: no harm done
                    remember(self._record(path, text, recipes[name], content))
            write_text_atomic(path, text)
        return tuple(path for _, path in files)

    def _record(self, path: Path, text: str, recipe: str, content: Content) -> Record:
        digest = hashlib.sha256(text.encode("utf-8", "ignore")).hexdigest()
        before = record_of(path)
        return Record(
            absolute(path),
            source_key(self.input),
            content,
            recipe,
            digest,
            replaced=before.sha256 if before else None,
        )


def output_folder(text: str) -> Path:
    """Return the folder that was named. Raises `RequestError` for an address that cannot be one."""
    folder = located(text)
    if read_only(address(folder) or "") is None and (why := flaw(text)):
        raise RequestError(f"{printable(text)}: {why}", _HINT)
    return folder


def plan_outputs(
    inputs: Sequence[Input], formats: Sequence[str], folder: Path | None, infix: str = ""
) -> list[Outputs]:
    """Return the outputs of each input: `<stem><infix>.<format>` beside it, or in `folder`.

    Where that is taken by an earlier input (or is an input itself, or was made from another one),
    `<name with extension><infix>.<format>`, then with a number. The same file given twice is planned once,
    and what earlier runs made of another of these inputs not at all: `*` may be given again and again.
    `folder` is made if need be, and in it inputs keep their place below the folder they were found in.
    Raises `RequestError` if `folder` cannot be written; of a folder beside an input only that input's
    outputs carry the error.
    """
    unique: dict[str, Input] = {}
    for one in inputs:
        # Not resolve(): two links to one file are two inputs, with outputs of their own.
        unique.setdefault(source_key(one), one)
    chosen = tuple(one for one in unique.values() if not _is_made_of(unique, one))
    return list(_planned(chosen, [f"{infix}.{name}" for name in formats], folder))


def _is_made_of(keys: Container[str], one: Input) -> bool:
    """Tell whether an input is an output that an earlier run made of an input with one of these keys."""
    if one.stream is not None or one.path.suffix.lower().removeprefix(".") not in FORMATS:
        return False
    record = record_of(one.path)
    return record is not None and record.source in keys


def _planned(unique: Sequence[Input], endings: Sequence[str], folder: Path | None) -> Iterator[Outputs]:
    if not endings:
        yield from map(Outputs, unique)
        return
    if folder is not None:
        _check_chosen(folder)
    taken = {_key(one.path) for one in unique if one.stream is None}
    refused: dict[Path, OutputError | None] = {}
    for one in unique:
        place = folder / one.subfolder if folder else one.path.parent
        if folder is not None and address(folder) is None:
            place = local(place)
        if place not in refused:
            refused[place] = _refusal(place)
        stem = _free_stem(one, place, endings, taken)
        files = tuple((ending.rpartition(".")[2], place / f"{stem}{ending}") for ending in endings)
        taken.update(_key(path) for _, path in files)
        yield Outputs(one, files, refused[place] or _too_long(path for _, path in files))


def _too_long(paths: Iterable[Path]) -> OutputError | None:
    """Return why no disk takes one of these names, if that is so: an input's may be as long as can be."""
    for path in paths:
        if address(path) is None and len(os.fsencode(path.name)) > _MOST_NAME_BYTES:
            return OutputError(f"{printable(path)}: the name is too long", "give the input a shorter one")
    return None


def _free_stem(one: Input, place: Path, endings: Sequence[str], taken: set[str]) -> str:
    numbered = (f"{one.path.name}.{number}" for number in count(2))
    ours = (None, source_key(one))
    return next(
        stem
        for stem in chain((one.path.stem, one.path.name), numbered)
        if all(
            _key(path) not in taken and owner(path) in ours
            for path in (place / f"{stem}{ending}" for ending in endings)
        )
    )


def _key(path: Path) -> str:
    """Return what is equal for names of one file, also where the file system ignores case."""
    return os.path.realpath(path).casefold()


def _check_chosen(folder: Path) -> None:
    name = printable(folder)
    where = address(folder)
    try:
        if where is None:
            folder.mkdir(parents=True, exist_ok=True)
        elif read_only(where) is None:
            reach(where)
    except (OSError, ValueError) as error:  # a name with a NUL byte
        made = "made" if where is None else "reached"
        raise RequestError(f"{name}: cannot be {made}: {reason(error)}", _HINT) from error
    if refusal := _refusal(folder):
        raise RequestError(refusal.message, _HINT)


def _refusal(folder: Path) -> OutputError | None:
    """Return why nothing can be written into `folder`; found out by writing, as permissions can lie.

    Of a folder that is yet to be made, the one that it will be made in is asked; of one far away, nobody.
    """
    hint = "-o chooses another folder"
    if (where := address(folder)) is not None:
        why = read_only(where)
        return OutputError(f"{printable(folder)}: cannot be written to: {why}", hint) if why else None
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return OutputError(f"{printable(folder)}: cannot be written to: {reason(error)}", hint)


@dataclass(frozen=True, slots=True)
class PendingFile:
    """An input that has to be transcribed."""

    outputs: Outputs
    formats: frozenset[str]
    """Those of its files that are to be written."""
    kept: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        """What the input goes by."""
        return self.outputs.source


class PendingFiles:
    """Tells what is to be done for each input of a request."""

    def __init__(self, request: BatchRequest) -> None:
        self._request = request
        self._listed: dict[str, frozenset[Path]] = {}

    @cached_property
    def recipes(self) -> dict[str, str]:
        """How the files of each format are made; see `BatchRequest.recipes`."""
        return self._request.recipes()

    def check(self, outputs: Outputs) -> PendingFile | FileOutcome:
        """Return what is to be done for an input, or its outcome if there is nothing to do or to be had."""
        source, name = outputs.source, outputs.input.name
        if outputs.input.error is not None:
            return FileOutcome(source, error=outputs.input.error)
        if outputs.input.stream is None and address(source) is None and (why := _absence(source)):
            return FileOutcome(source, error=AudioError(f"{name}: {why}"))
        if outputs.error is not None:
            return FileOutcome(source, error=outputs.error)
        try:
            if self._request.overwrite or not any(self._is_there(path) for _, path in outputs.files):
                return PendingFile(outputs, frozenset(self._request.formats))
            return self._compared(outputs)
        except OSError as error:
            message = f"{name}: cannot look for what is there already: {reason(error)}"
            return FileOutcome(source, error=OutputError(message))

    def _is_there(self, path: Path) -> bool:
        """Tell whether an output exists. Far folders are listed once: asking for every file takes hours."""
        where = address(path.parent)
        if where is None:
            return os.path.lexists(path)
        if where not in self._listed:
            self._listed[where] = listed(where)
        return path in self._listed[where]

    def _compared(self, outputs: Outputs) -> PendingFile | FileOutcome:
        """Look at what is there already."""
        states = outputs.states(self.recipes)
        due = frozenset(name for name, state in states.items() if state in {State.MISSING, State.STALE})
        kept = [(path, states[name]) for name, path in outputs.files if name not in due]
        notes = tuple(
            f"kept {printable(path.name)}: {state.value} (--overwrite makes it anew)"
            for path, state in kept
            if state is not State.COMPLETE
        )
        paths = tuple(path for path, _ in kept)
        if due:
            return PendingFile(outputs, due, paths, notes)
        return FileOutcome(outputs.source, kept=paths, notes=notes)


def _absence(source: Path) -> str | None:
    """Return why a file cannot be had; None if it is there, or a link to nothing is."""
    try:
        source.lstat()
    except FileNotFoundError:
        return "no such file"
    except OSError as error:  # it may well be there, in a folder that is not to be looked into
        return f"cannot be opened: {reason(error)}"
    return None


def clear_remains(plans: Iterable[Outputs]) -> None:
    """Remove what killed runs left half-written where these files will be."""
    folders = dict.fromkeys(path.parent for outputs in plans for _, path in outputs.files)
    if folders:
        sweep_records()
    for folder in folders:
        sweep(folder)
