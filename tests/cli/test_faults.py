"""Runs of the real command to which all kinds of things happen: docs/reliability.md in short."""

import subprocess
import sys
from pathlib import Path

import pytest

COUNT = Path(__file__).parents[2] / "tools" / "faults" / "faults.py"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the count needs Linux")
def test_whatever_happens_no_promise_is_broken():
    command = [sys.executable, COUNT, "--runs", "16", "--seed", "7"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "| all | 16 | | 0 |" in ended.stdout
