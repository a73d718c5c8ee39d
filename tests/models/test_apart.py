"""Functions in a process of their own: what they return, raise, print, and how they may die."""

import json
import os
import signal

import pytest

from as2d_cli.domain.errors import ModelError
from as2d_cli.models.apart import run_apart
from as2d_cli.system.json_files import read_model_json


def test_what_the_function_returns_comes_back_and_what_it_prints_does_not(capfd):
    assert run_apart("test", os.getpid) != os.getpid()
    assert run_apart("test", os.write, 1, b"chatter") == len(b"chatter")
    assert capfd.readouterr() == ("", "")


def test_an_error_for_the_user_is_raised_here_with_its_hint(tmp_path):
    with pytest.raises(ModelError, match="absent: missing or broken") as told:
        run_apart("test", read_model_json, tmp_path / "absent", "make it")
    assert told.value.hint == "make it"


@pytest.mark.parametrize(
    ("body", "argument", "cause"),
    [
        (signal.raise_signal, signal.SIGSEGV, "it was ended by SIGSEGV"),
        (json.loads, "{", r"JSONDecodeError: Expecting property name"),
        (os._exit, 0, "exit code 0"),
    ],
)
def test_another_end_is_told_by_its_cause(body, argument, cause):
    with pytest.raises(ChildProcessError, match=cause):
        run_apart("test", body, argument)


def test_such_a_process_may_start_another():
    assert run_apart("outer", run_apart, "inner", os.getpid) != os.getpid()
