"""`as2d transcribe`: what is said, as text."""

from __future__ import annotations

from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.options.parameters import BatchOptions
from as2d_cli.cli.options.settings import configured
from as2d_cli.cli.output.run import run


def transcribe(options: BatchOptions) -> ExitCode:
    """Write down what is said in audio files. The text goes to stdout, everything else to stderr."""
    return run(options)


app = configured(transcribe, BatchOptions)
