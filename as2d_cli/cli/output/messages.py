"""What a command says on stderr. Never read as markup, and no line holds what a terminal obeys."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from as2d_cli.domain.errors import As2dError, one_line
from as2d_cli.system.printable import printable


class Messages:
    """Writes lines to stderr, each beginning with the tool's name; how many depends on what is wanted."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet = quiet
        self.verbose = verbose

    def failure(self, source: object, error: As2dError) -> None:
        """Tell that a source failed; said even when quiet."""
        name = printable(str(source))
        about = error.message if error.message.startswith(name) else f"{name}: {error.message}"
        hint = f" ({error.hint})" if error.hint else ""
        self.line(f"{about}{hint}")

    def note(self, text: str) -> None:
        """Tell what the user may want to know."""
        if not self.quiet:
            self.line(text)

    def detail(self, text: str) -> None:
        """Tell what only the curious want to know."""
        if self.verbose:
            self.line(text)

    def line(self, text: str) -> None:
        """Write one line."""
        tell(text)


def tell(text: str) -> None:
    """Write one line that begins with the tool's name to stderr."""
    say(f"as2d: {text}")


def say(line: str) -> None:
    """Write one line to stderr; where it cannot be written nothing more is, and the run goes on."""
    try:
        sys.stderr.write(f"{one_line(line)}\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Have what is still to be written to a standard stream vanish, so that the last flush cannot fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
