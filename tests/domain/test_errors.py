import pickle

import pytest

from as2d_cli.domain.errors import As2dError, DecodeError, described


class StrangeError(DecodeError):
    """An error of a plugin, made in another way than its base."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}", hint=7)


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError


def test_an_error_of_a_plugin_crosses_a_process_boundary_as_the_nearest_that_every_process_knows():
    error = pickle.loads(pickle.dumps(StrangeError("this", "that")))
    assert (type(error), error.message, error.hint) == (DecodeError, "this and that", "7")


def test_a_hint_crosses_a_process_boundary():
    error = pickle.loads(pickle.dumps(As2dError("broken", "mend it")))
    assert (error.message, error.hint) == ("broken", "mend it")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("one\ntwo"), "ValueError: one"),
        (ValueError("red: \x1b[31m"), "ValueError: red: ?[31m"),
        (MemoryError(), "MemoryError: no message"),
        (SilentError(), "SilentError: no message"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_any_exception_is_described_on_one_line(error, text):
    assert described(error) == text
