"""The sub-commands of `as2d`: what each is for, and how typer is to treat them all."""

from __future__ import annotations

from typing import Any

import typer

COMMANDS = {
    "transcribe": "Write down what is said in audio files.",
    "translate": "Write down in English what is said in audio files, in any language.",
    "ask": "Answer questions about what is said in audio files.",
    "models": "List, fetch, check and remove models.",
    "plugins": "List plugins, and begin one of your own.",
    "profile": "Measure, show and forget what drafts are worth on this device.",
    "bench": "Decode the same windows in every mode and compare.",
    "config": "Show the settings and where they come from.",
}
"""Name of each sub-command, which is that of its module's, and its help in one line."""


def sub_command(**options: Any) -> typer.Typer:  # noqa: ANN401 - as typer takes them
    """Return what a sub-command is made of: help is plain text, and errors are for `app` to tell."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **options)


def group(name: str) -> typer.Typer:
    """Return what a sub-command with sub-commands of its own is made of."""
    return sub_command(help=COMMANDS[name], no_args_is_help=True)
