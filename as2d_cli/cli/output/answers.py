"""What `as2d ask` puts on stdout: answers with their times, or one JSON object per line. Always UTF-8."""

from __future__ import annotations

from typing import Any, Protocol

from as2d_cli.ask.types import Answer, AskReport, AskRequest
from as2d_cli.batch.report import stats_dict
from as2d_cli.cli.output.results import name_of, write_out, write_record
from as2d_cli.domain.errors import one_line
from as2d_cli.domain.types import Span
from as2d_cli.system.printable import printable
from as2d_cli.transcripts.formats import clock


class Answers(Protocol):
    """Takes answers as they come, and the report at the end."""

    def answer(self, answer: Answer) -> None:
        """Show one answer."""

    def report(self, report: AskReport) -> None:
        """Show the report."""


class TextAnswers:
    """One answer after the other, each with the times it rests on; of what failed nothing."""

    def __init__(self, *, named: bool) -> None:
        """With `named`, say before each answer what it answers."""
        self._named = named
        self._separator = ""

    def answer(self, answer: Answer) -> None:
        """Write one answer."""
        if answer.text is None:
            return
        name = f"{printable(answer.source)}: {one_line(str(answer.question))}\n" if self._named else ""
        times = "".join(f" [{clock(int(span.start_s))}-{clock(int(span.end_s))}]" for span in answer.spans)
        write_out(f"{self._separator}{name}{answer.text}{times}\n")
        self._separator = "\n"

    def report(self, report: AskReport) -> None:
        """Write nothing: stdout is for answers."""


class JsonAnswers:
    """One object per answer, and one with the report."""

    def __init__(self, request: AskRequest) -> None:
        """Name the models of `request` in every object."""
        drafter = request.drafter.name if request.drafter else None
        self._models = {
            "listener": request.listening.target.name,
            "reader": request.target.name,
            "drafter": drafter,
        }

    def answer(self, answer: Answer) -> None:
        """Write one answer."""
        record: dict[str, Any] = {"file": name_of(answer.source), "question": answer.question}
        if answer.error is not None:
            record |= {"error": answer.error.message, "hint": answer.error.hint}
        else:
            record |= {
                "answer": answer.text,
                "found": answer.is_found,
                "times": [_times(span) for span in answer.spans],
                "whole_transcript": answer.is_whole,
                "models": self._models,
                "stats": stats_dict(answer.stats),
                "warnings": list(answer.warnings),
            }
        write_record(record)

    def report(self, report: AskReport) -> None:
        """Write the report."""
        write_record({"report": report.as_dict()})


def _times(span: Span) -> dict[str, float]:
    return {"start": round(span.start_s, 3), "end": round(span.end_s, 3)}
