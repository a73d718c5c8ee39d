"""What is asked about recordings, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from as2d_cli.ask.retrieval import is_found
from as2d_cli.batch.report import RunReport
from as2d_cli.batch.request import BatchRequest
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import DecodeStats, Span
from as2d_cli.engine.messages import DecodeSettings
from as2d_cli.models.registry import ModelEntry

NOTHING_FOUND = "Not in the recording."
"""The answer to every question about a recording in which nothing is said."""


@dataclass(frozen=True, slots=True)
class AskRequest:
    """All that is asked for."""

    listening: BatchRequest
    """The recordings, and how they are transcribed."""
    questions: tuple[str, ...]
    reader: ModelEntry | None
    """What answers from the transcript; None: the model that listens answers by itself."""
    drafter: ModelEntry | None = None
    """Drafts the answers."""
    auto_budget: bool = False
    """Whether this device's profile decides if that drafter is used, and how much."""
    compare: bool = False
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    """How drafts of the answers are used."""

    @property
    def target(self) -> ModelEntry:
        """The model whose answers are wanted."""
        return self.reader or self.listening.target


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one question about one recording."""

    source: Path
    question: str | None
    """None: the recording failed before anything could be asked about it."""
    text: str | None = None
    """None: there is an error."""
    spans: tuple[Span, ...] = ()
    """Where in the recording the answer comes from, seconds; nothing for one that is not there."""
    is_whole: bool = True
    """Whether the model was given all of the transcript."""
    error: As2dError | None = None
    stats: DecodeStats = field(default_factory=DecodeStats)
    warnings: tuple[str, ...] = ()

    @property
    def is_found(self) -> bool:
        """Whether the recording tells."""
        return self.text is not None and is_found(self.text)


@dataclass(frozen=True, slots=True)
class AskReport:
    """Both halves of a run."""

    listening: RunReport | None
    """How the transcripts came about; None if the model that answered listened itself."""
    answering: RunReport

    @property
    def parts(self) -> tuple[RunReport, ...]:
        """The runs that this is the report of."""
        return (self.listening, self.answering) if self.listening else (self.answering,)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been done yet."""
        return all(part.is_empty for part in self.parts)

    @property
    def succeeded(self) -> bool:
        """Whether every question about every recording was answered."""
        return all(part.succeeded for part in self.parts)

    @property
    def is_doubtful(self) -> bool:
        """Whether a comparison was asked for and did not find everything identical."""
        return self.answering.is_doubtful

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "listening": self.listening and self.listening.as_dict(),
            "answering": self.answering.as_dict(),
        }
