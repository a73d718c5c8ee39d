"""`as2d transcribe`: what is said, as text."""

from __future__ import annotations

from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.parameters import BatchOptions
from as2d_cli.cli.run import run
from as2d_cli.cli.settings import configured


def transcribe(options: BatchOptions) -> ExitCode:
    """Write down what is said in audio files. The text goes to stdout, everything else to stderr."""
    return run(options)


app = configured(transcribe, BatchOptions)
