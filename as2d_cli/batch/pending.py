"""What is left to do of a run: which files are missing or out of date, and which inputs need no work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from as2d_cli.batch.outputs import Outputs
from as2d_cli.batch.request import BatchRequest, FileOutcome
from as2d_cli.batch.resume import State, sweep, sweep_records
from as2d_cli.domain.errors import AudioError, OutputError, reason
from as2d_cli.system.addresses import address
from as2d_cli.system.printable import printable
from as2d_cli.system.remote_files import listed


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

    def settle(self, outputs: Outputs) -> PendingFile | FileOutcome:
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
