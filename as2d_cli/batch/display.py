"""What a run shows of its work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from as2d_cli.engine.messages import Progress
from as2d_cli.models import fetch


class Display:
    """Shows nothing; others override what they show."""

    def fetching(self) -> AbstractContextManager[fetch.Progress]:
        """Give the callback for fetching and converting one model."""
        return nullcontext(fetch.silent)

    def note(self, line: str) -> None:
        """Tell something the user may want to know."""

    def begin(self, sources: Sequence[Path]) -> None:
        """Note that work on these sources begins."""

    def steps(self, progress: Progress) -> None:
        """Note how far the window in work has come."""

    def window(self, source: Path, seconds: float) -> None:
        """Note that a window of `seconds` of this source is finished."""

    def file(self, source: Path) -> None:
        """Note that a source is finished."""
