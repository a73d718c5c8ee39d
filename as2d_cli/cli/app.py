"""The `as2d` command: finds the sub-command, and turns errors into one line and an exit code.

A sub-command's module is imported when it is called, not before, so that help and version are quick.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from as2d_cli import __version__
from as2d_cli.cli.commands.catalog import COMMANDS
from as2d_cli.cli.exit_codes import ExitCode, code_of_stop, ending_in_order, exit_code
from as2d_cli.cli.output.messages import say, silence
from as2d_cli.domain.errors import As2dError
from as2d_cli.system.streams import fill_closed
from as2d_cli.system.toml import suggestion


class LazyGroup(TyperGroup):
    """Imports sub-commands on demand, and answers for the errors of all of them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer has had two Context classes
        """Return the names of the sub-commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """Import a sub-command."""
        if cmd_name not in COMMANDS:
            return None
        self.commands[cmd_name] = get_command(import_module(f"as2d_cli.cli.commands.{cmd_name}").app)
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401
        """Find the sub-command. A usage error names the nearest one, or says what files are given to."""
        if not ctx.resilient_parsing and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"No such command {args[0]!r}. {_meant(args[0])}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """List the sub-commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Read the command line; help and version are printed meanwhile."""
        with _ending_with_code():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run a sub-command."""
        with _ending_with_code(), ending_in_order():
            return super().invoke(ctx)


@contextmanager
def _ending_with_code() -> Iterator[None]:
    """Turn errors into one line and an exit code; `AS2D_DEBUG=1` lets them through as tracebacks."""
    try:
        yield
    except As2dError as error:
        if os.environ.get("AS2D_DEBUG"):
            raise
        say(f"as2d: error: {error.message}")
        if error.hint:
            say(f"hint: {error.hint}")
        raise typer.Exit(exit_code(error)) from error
    except KeyboardInterrupt as stop:
        raise typer.Exit(code_of_stop()) from stop
    except RuntimeError as error:
        # Before Python 3.12, Ctrl-C while an import makes a class arrives as "Error calling __set_name__".
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        raise typer.Exit(code_of_stop()) from error
    except BrokenPipeError as error:  # `as2d ... | head`: whoever read the results has had enough
        silence(sys.stdout)
        raise typer.Exit(ExitCode.PIPE_CLOSED) from error
    except (OSError, MemoryError) as error:
        if os.environ.get("AS2D_DEBUG"):
            raise
        silence(sys.stdout)
        say(f"as2d: error: {_refused(error)}")
        raise typer.Exit(ExitCode.SOME_FAILED) from error


def _refused(error: OSError | MemoryError) -> str:
    """Return what the system refuses, and why. Files of our own tell theirs as `As2dError`."""
    if isinstance(error, MemoryError):
        return "out of memory"
    unnamed = dict.fromkeys((errno.ENOSPC, errno.EFBIG, errno.EIO), "standard output")
    unnamed[errno.ENOENT] = "the current folder"
    where = error.filename or unnamed.get(error.errno or 0, "the system")
    return f"{where}: {error.strerror or error}"


def _meant(word: str) -> str:
    if Path(word).exists():
        return f"To write down what is said there: as2d transcribe {shlex.quote(word)}"
    return suggestion(word, COMMANDS).capitalize()


app = typer.Typer(
    cls=LazyGroup,
    help="Text of audio, made on your own machine, faster: a drafter runs ahead, the target verifies.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"as2d {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options before the sub-command."""


def main() -> None:
    """Run the command with the process's arguments and exit."""
    fill_closed()
    app(prog_name="as2d")
