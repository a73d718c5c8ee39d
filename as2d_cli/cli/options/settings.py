"""Commands whose options can also be set by the environment and by the configuration file.

A flag goes before `AS2D_<OPTION>`, that before the file, that before the default. typer keeps count of where
each value came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from as2d_cli.cli.commands.catalog import sub_command
from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.options.config_file import Value, read_config
from as2d_cli.cli.options.parameters import COMMANDS, Options
from as2d_cli.models.options import DeclaredOptions, ModelOption, declared_options

PREFIX = "AS2D"
OptionsT = TypeVar("OptionsT", bound=Options)


_ELSEWHERE = {
    "--task": "as2d translate writes English",
    "--translate": "as2d translate writes English",
    "--initial-prompt": "--prompt",
    "--format": "-f, --output-format",
    "-osrt": "-f srt",
    "-ovtt": "-f vtt",
    "--vad-filter": "--vad, which is the default",
    "--beam-size": "decoding is greedy",
    "--temperature": "decoding is greedy",
    "--device": "models run on CPUs",
    "--compute-type": "models.toml has each model's precision",
    "--model-dir": "AS2D_CACHE_DIR says where models are kept",
}
"""What users of other Whisper programs look for, and what takes its place; `-osrt` would name a folder."""


class ConfiguredCommand(TyperCommand):
    """Fills in what the command line leaves open; a usage error knows the options of other programs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer has had two Contexts
        """Read the configuration file before the options, but not for help nor to complete a word."""
        if not ctx.resilient_parsing and not {"-h", "--help"}.intersection(args):
            ctx.auto_envvar_prefix = PREFIX
            ctx.default_map = read_config(all_setting_kinds())  # a setting of another command does no harm
            for name in (arg.partition("=")[0].replace("_", "-") for arg in args):
                if name in _ELSEWHERE:
                    ctx.fail(f"No such option: {name}. Instead: {_ELSEWHERE[name]}")
        return super().parse_args(ctx, args)


def with_options(body: Callable[[OptionsT], ExitCode], options: type[OptionsT]) -> Callable[..., None]:
    """Return a function for typer that calls `body` with its options and ends with the code that it returns.

    The parameters that typer sees are the fields of `options`, the help is `body`'s docstring.
    """
    own = {one.name for one in fields(options)}

    def call(command: typer.Context, **values: Any) -> None:  # noqa: ANN401 - typer has checked them
        chosen = {name: values.pop(name) for name in [*values] if name not in own}
        more = {"model_options": chosen} if chosen else {}
        raise typer.Exit(body(options(given=_given(command), **values, **more)))

    first = Parameter("command", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    declared = declared_model_options().options if "model_options" in own else {}
    call.__signature__ = Signature([first, *_parameters(options, declared)])  # type: ignore[attr-defined]
    call.__name__, call.__doc__ = body.__name__, body.__doc__
    return call


def configured(body: Callable[[OptionsT], ExitCode], options: type[OptionsT]) -> typer.Typer:
    """Return the command that calls `body` with its options, which environment and file may set, too."""
    app = sub_command()
    app.command(
        cls=ConfiguredCommand,
        context_settings={"token_normalize_func": lambda name: name.replace("_", "-")},
        epilog="AS2D_<OPTION> in the environment and the file `as2d config path` set options, too.",
    )(with_options(body, options))
    return app


def _parameters(options: type[Options], declared: Mapping[str, ModelOption]) -> Iterator[Parameter]:
    """Yield a command's options as parameters of a function: its fields, and those that plugins declare."""
    hints = get_type_hints(options, include_extras=True)
    for one in fields(options):
        if get_origin(hints[one.name]) is Annotated:
            yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        elif one.name == "model_options":
            yield from (_parameter(name, option) for name, option in declared.items())


def declared_model_options() -> DeclaredOptions:
    """Return the options that plugins declare for their models, but those whose flags as2d has already."""
    return declared_options(reserved=_own_names())


def _parameter(name: str, option: ModelOption) -> Parameter:
    info = typer.Option(f"--{name.replace('_', '-')}", metavar="|".join(option.choices), help=option.help)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, info])


@cache
def _own_names() -> frozenset[str]:
    """Return the names of all commands' own options, also those that only flags have: `no_vad`."""
    names = {"help", "command"}
    for options in COMMANDS.values():
        names |= {field.name for field in fields(options)}
        for parameter in _parameters(options, {}):
            info = get_args(parameter.annotation)[1]
            flags = (info.default, *(info.param_decls or ()))  # where typer keeps the first within Annotated
            forms = [form for flag in flags if isinstance(flag, str) for form in flag.split("/")]
            names |= {parameter.name, *(form.lstrip("-").replace("-", "_") for form in forms)}
    return frozenset(names)


def setting_kinds(options: type[Options]) -> dict[str, type[Value]]:
    """Return the names of a command's settings, and whether they are texts, numbers or switches."""
    kinds: dict[str, type[Value]] = {}
    for parameter in _parameters(options, declared_model_options().options):
        hint, info = get_args(parameter.annotation)
        if isinstance(info, OptionInfo) and info.allow_from_autoenv:
            kinds[parameter.name] = next((kind for kind in (bool, int) if kind in _kinds(hint)), str)
    return kinds


def all_setting_kinds() -> dict[str, type[Value]]:
    """Return the settings of all commands."""
    return {name: kind for options in COMMANDS.values() for name, kind in setting_kinds(options).items()}


def _kinds(hint: object) -> tuple[object, ...]:
    return get_args(hint) or (hint,)


def origin(ctx: Any, name: str) -> str:  # noqa: ANN401
    """Return where the value of an option comes from: `flag`, `environment`, `file` or `default`."""
    source = ctx.get_parameter_source(name)
    return {"COMMANDLINE": "flag", "ENVIRONMENT": "environment", "DEFAULT_MAP": "file"}.get(
        source.name if source else "", "default"
    )


def _given(ctx: Any) -> frozenset[str]:  # noqa: ANN401
    """Return the names of the options that are on the command line itself."""
    return frozenset(name for name in ctx.params if origin(ctx, name) == "flag")
