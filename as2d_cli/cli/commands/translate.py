"""`as2d translate`: what is said, as English text."""

from __future__ import annotations

from as2d_cli.cli.commands.transcribe import run_files
from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.options.parameters import TranslateOptions
from as2d_cli.cli.options.settings import configured


def translate(options: TranslateOptions) -> ExitCode:
    """Write down in English what is said in audio files, in any language that the model knows.

    The text goes to stdout, everything else to stderr. Files are called <stem>.en.<format>, so that they go
    beside those of as2d transcribe. English speech is written down as it is. --to chooses another language.
    """
    return run_files(options)


app = configured(translate, TranslateOptions)
