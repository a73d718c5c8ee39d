"""The exceptions of as2d. Each carries one line for the user and, where there is one, what to do.

As2dError
├── RegistryError     models.toml or a user's registry is wrong
├── ModelError        a model cannot be fetched, verified, converted or loaded
├── PluginError       a plugin is missing, broken or does not fit
├── AudioError        a file cannot be read as audio
├── DecodeError       a window could not be decoded (a worker died, a model failed)
├── RequestError      what was asked for makes no sense, or not for this model
├── MeasurementError  the device was disturbed while it was measured
└── OutputError       a result cannot be written
"""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 1000


class As2dError(Exception):
    """Base of all errors meant for the user: `message` says what is wrong, `hint` what to do.

    Both are made one printable line each: they may quote files, plugins and libraries.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = one_line(str(message))
        self.hint = None if hint is None else one_line(str(hint))  # of a plugin, it may be anything
        super().__init__(self.message)

    @property
    def with_hint(self) -> str:
        """The message and the hint, for where there is one line only."""
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[type[As2dError], tuple[str, str | None]]:
        """Cross a process boundary as what every process knows: the nearest class from here, and text."""
        known = next(one for one in type(self).__mro__ if one.__module__ == __name__)
        return known, (str(self.message), None if self.hint is None else str(self.hint))


def described(error: BaseException) -> str:
    """Return an exception of foreign code on one line: its type and the first line of its text."""
    try:
        lines = str(error).splitlines()
    except Exception:  # noqa: BLE001 - even the text of an exception is foreign code
        lines = []
    text = visible(next(iter(lines), ""))
    return f"{type(error).__name__}: {text or 'no message'}"


def reason(error: Exception) -> str:
    """Return why the operating system or a library refused, without its path and number."""
    return getattr(error, "strerror", None) or str(error)


def visible(text: str) -> str:
    """Return a text with `?` for each character that a terminal would obey and not show."""
    return "".join(character if character.isprintable() else "?" for character in text)


def one_line(text: str) -> str:
    """Return a message of a library or a plugin, which may have many lines, as one of bearable length."""
    half = _LONGEST // 2
    cut = text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"
    return visible(" ".join(cut.split("\n")))


class RegistryError(As2dError):
    """models.toml or a user's registry is wrong: names file, table and key."""


class ModelError(As2dError):
    """A model cannot be fetched, verified, converted or loaded."""


class PluginError(As2dError):
    """A plugin is missing, broken or does not fit this version."""


class AudioError(As2dError):
    """A file cannot be read as audio."""


class DecodeError(As2dError):
    """A window could not be decoded."""


class RequestError(As2dError):
    """What was asked for makes no sense, or not for this model."""


class MeasurementError(As2dError):
    """The device was disturbed while it was measured: the figures are of no use."""


class OutputError(As2dError):
    """A result cannot be written."""
