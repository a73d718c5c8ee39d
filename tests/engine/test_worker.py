"""The bodies of worker processes, apart from what they do for a run."""

import subprocess
import sys

import pytest

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
