"""What a run puts on stdout: the texts, or one JSON object per line. Always UTF-8, whatever the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from as2d_cli.batch.report import RunReport, stats_dict
from as2d_cli.batch.work import FileOutcome
from as2d_cli.domain.types import Transcript
from as2d_cli.system.addresses import shown
from as2d_cli.transcripts.formats import document, to_json, write_txt


class Results(Protocol):
    """Takes outcomes as they come, and the report at the end."""

    def file(self, outcome: FileOutcome) -> None:
        """Show one outcome."""

    def report(self, report: RunReport) -> None:
        """Show the report."""


class TextResults:
    """The text of one file after the other, an empty line between them; of failed ones nothing."""

    def __init__(self, write: Callable[[Transcript], str] = write_txt) -> None:
        """Show what `write` makes of a transcript."""
        self._separator = ""
        self._write = write

    def file(self, outcome: FileOutcome) -> None:
        """Write the text of one file, if it has any."""
        text = self._write(outcome.transcript) if outcome.transcript else ""
        if text:
            write_out(self._separator + text)
            self._separator = "\n"

    def report(self, report: RunReport) -> None:
        """Write nothing: stdout is for texts."""


class JsonResults:
    """One object per file, and one with the report."""

    def file(self, outcome: FileOutcome) -> None:
        """Write one outcome."""
        record: dict[str, Any] = {"file": name_of(outcome.source)}
        if outcome.transcript is not None:
            record |= document(outcome.transcript)
            record["stats"] = stats_dict(outcome.stats)
            record["warnings"] = list(outcome.warnings)
        elif outcome.error is not None:
            record |= {"error": outcome.error.message, "hint": outcome.error.hint}
        else:
            record["skipped"] = True
        if outcome.written or outcome.kept:
            record["outputs"] = [name_of(path) for path in (*outcome.kept, *outcome.written)]
        write_record(record)

    def report(self, report: RunReport) -> None:
        """Write the report."""
        write_record({"report": report.as_dict()})


def name_of(path: Path) -> str:
    """Return a path as text; bytes of it that are no UTF-8 are replaced."""
    return os.fsencode(shown(path)).decode("utf-8", "replace")


def write_record(record: dict[str, Any]) -> None:
    """Write one line of JSON to stdout at once."""
    write_out(to_json(record) + "\n")


def write_out(text: str) -> None:
    """Write to stdout at once."""
    sys.stdout.buffer.write(text.encode("utf-8", "ignore"))
    sys.stdout.buffer.flush()
