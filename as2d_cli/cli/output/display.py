"""Shows a run on stderr: messages, and on a terminal the bars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from as2d_cli.batch.display import Display
from as2d_cli.cli.output.fetch_progress import shown_progress
from as2d_cli.cli.output.messages import Messages
from as2d_cli.engine.messages import Progress
from as2d_cli.models.fetch import Progress as FetchProgress

if TYPE_CHECKING:  # rich is slow to import, and only a terminal needs it
    from as2d_cli.cli.output.progress import Bar


class TerminalDisplay(Display):
    """Use as a context manager: leaving it clears the bar."""

    def __init__(self, messages: Messages, *, bar: bool) -> None:
        """With `bar`, show one while files are in work, if stderr is a terminal."""
        self._messages = messages
        self._wants_bar = bar and not messages.quiet and sys.stderr.isatty()
        self._bar: Bar | None = None

    def __enter__(self) -> TerminalDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Clear the bar; safe to call twice."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def aside(self) -> AbstractContextManager[None]:
        """Clear the bar while something else is written to the terminal."""
        return self._bar.hidden() if self._bar is not None else nullcontext()

    def fetching(self) -> AbstractContextManager[FetchProgress]:
        """Show what is fetched and converted."""
        return shown_progress(self._messages.quiet, bar=self._wants_bar)

    def note(self, line: str) -> None:
        """Write a line."""
        with self.aside():
            self._messages.note(line)

    def begin(self, sources: Sequence[Path]) -> None:
        """Show the bar."""
        if self._wants_bar:
            from as2d_cli.cli.output.progress import Bar

            self._bar = Bar(sources)

    def steps(self, progress: Progress) -> None:
        """Show tokens per step."""
        if self._bar is not None:
            self._bar.steps(progress)

    def window(self, source: Path, seconds: float) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.window(source, seconds)

    def file(self, source: Path) -> None:
        """Show the next file."""
        if self._bar is not None:
            self._bar.file(source)
