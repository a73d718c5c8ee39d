"""A command whose options can also be set by the environment and by the configuration file.

A flag goes before `AS2D_<OPTION>`, that before the file, that before the default. typer keeps count of where
each value came from.
"""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from typer.core import TyperCommand

from as2d_cli.config import Value, read_config

PREFIX = "AS2D"
_INPUTS = frozenset({"files", "files_from", "null", "help"})
"""What is to be done this time; never a setting."""


class ConfiguredCommand(TyperCommand):
    """Fills in what the command line leaves open."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer has had two Contexts
        """Read the configuration file before the options, but not for help nor to complete a word."""
        if not ctx.resilient_parsing and not {"-h", "--help"}.intersection(args):
            ctx.auto_envvar_prefix = PREFIX
            ctx.default_map = read_config(setting_kinds(self))
        return super().parse_args(ctx, args)


def setting_kinds(command: Any) -> dict[str, type[Value]]:  # noqa: ANN401
    """Return the names of a command's settings, and whether they are texts, numbers or switches."""
    hints = get_type_hints(command.callback)
    return {
        parameter.name: next((kind for kind in (bool, int) if kind in _kinds(hints[parameter.name])), str)
        for parameter in command.params
        if parameter.name not in _INPUTS
    }


def _kinds(hint: object) -> tuple[object, ...]:
    return get_args(hint) or (hint,)


def origin(ctx: Any, name: str) -> str:  # noqa: ANN401
    """Return where the value of an option comes from: `flag`, `environment`, `file` or `default`."""
    source = ctx.get_parameter_source(name)
    return {"COMMANDLINE": "flag", "ENVIRONMENT": "environment", "DEFAULT_MAP": "file"}.get(
        source.name if source else "", "default"
    )


def given(ctx: Any) -> frozenset[str]:  # noqa: ANN401
    """Return the names of the options that are on the command line itself."""
    return frozenset(name for name in ctx.params if origin(ctx, name) == "flag")
