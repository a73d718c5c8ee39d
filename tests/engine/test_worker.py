"""The bodies of worker processes, apart from what they do for a run."""

import subprocess
import sys
from multiprocessing import Pipe

import pytest

from as2d_cli.domain.types import Request
from as2d_cli.engine.messages import ForgetJobs, Job
from as2d_cli.engine.worker import jobs

CLOSED = """
from multiprocessing import Pipe
from as2d_cli.domain.errors import PluginError
from as2d_cli.engine.worker import serving
ours, theirs = Pipe()
with serving(theirs):
    theirs.close()
    raise {error}
"""


@pytest.mark.parametrize(("error", "code"), [("PluginError('odd')", 0), ("ValueError('odd')", 1)])
def test_a_worker_whose_pipe_a_plugin_closed_ends_without_a_traceback(error, code):
    command = [sys.executable, "-c", CLOSED.format(error=error)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "Traceback" not in ended.stderr
    assert ended.returncode == code


def test_jobs_that_are_forgotten_before_their_turn_are_passed_over():
    ours, theirs = Pipe()
    first, second, third = (Job(number, 0, number, Request(), 1.0, 0, drafted=False) for number in (1, 2, 3))
    for message in (first, second, ForgetJobs(), third):
        ours.send(message)
    served = jobs(theirs, lambda order: None)
    assert next(served) == third
    ours.send(first)
    assert next(served) == first
    ours.close()
    with pytest.raises(EOFError):
        next(served)
