"""Progress of fetching: a bar on a terminal, a line per stage elsewhere, never anything on stdout."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from as2d_cli.cli.output.fetch_progress import shown_progress

SCRIPT = """
import sys
sys.path[:] = {path}
from as2d_cli.cli.output.fetch_progress import shown_progress
with shown_progress() as progress:
    progress("downloading [x]", 0, None)
    progress("downloading [x]", 50, 100)
    progress("converting", 0, None)
"""


def test_without_a_terminal_each_stage_is_one_line_on_stderr(capsys):
    with shown_progress() as progress:
        progress("downloading", 0, None)
        progress("downloading", 50, 100)
        progress("converting", 0, None)
    assert capsys.readouterr() == ("", "downloading\nconverting\n")


def test_quiet_shows_nothing(capsys):
    with shown_progress(quiet=True) as progress:
        progress("downloading", 0, None)
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_on_a_terminal_the_bar_is_drawn_on_stderr_and_taken_away_again():
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", SCRIPT.format(path=sys.path)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # Linux's way to say that the other end is closed
        while chunk := os.read(ours, 1 << 16):  # the system may hand on a terminal's text in pieces
            seen += chunk
    os.close(ours)
    drawn = seen.decode()
    assert run.stdout == b""
    assert "converting" in drawn
    assert "0%" not in drawn.split("converting")[-1], "the total of the stage before must not stay"
    assert drawn.rstrip().endswith("\x1b[2K"), "the line is cleared at the end"
