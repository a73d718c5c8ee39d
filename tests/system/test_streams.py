import subprocess
import sys

PRINTED = """
import ctypes, sys
from as2d_cli.system.streams import stdout_to
with stdout_to(2):
    ctypes.CDLL(None).printf(b"of C\\n")
    print("of Python")
print("result")
"""


def test_what_native_code_prints_and_keeps_goes_where_stdout_led_when_it_was_printed():
    ended = subprocess.run([sys.executable, "-c", PRINTED], check=True, capture_output=True, text=True)
    assert (ended.stdout, sorted(ended.stderr.split("\n"))) == ("result\n", ["", "of C", "of Python"])


CLOSED = """
import os
from as2d_cli.system.streams import stdout_to
with stdout_to(2):
    os.closerange(0, 64)
"""


def test_a_plugin_may_close_every_file_while_stdout_leads_elsewhere():
    ended = subprocess.run([sys.executable, "-c", CLOSED], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
