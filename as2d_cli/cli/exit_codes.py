"""What the exit code of a command means."""

from __future__ import annotations

from enum import IntEnum

from as2d_cli.errors import As2dError, ModelError, PluginError, RegistryError, RequestError


class ExitCode(IntEnum):
    """Exit codes of `as2d`; the last two are what shells show for the signals."""

    OK = 0
    SOME_FAILED = 1
    """An input failed, or was not confirmed by --compare; all others were done."""
    USAGE = 2
    UNAVAILABLE = 3
    """A model, plugin or device cannot be used."""
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def exit_code(error: As2dError) -> ExitCode:
    """Return the code of a command that ends with `error`."""
    if isinstance(error, RequestError):
        return ExitCode.USAGE
    if isinstance(error, ModelError | PluginError | RegistryError):
        return ExitCode.UNAVAILABLE
    return ExitCode.SOME_FAILED
