"""A few of the damaged files of `tools/fuzz/fuzz_audio.py`, which reads as many as one likes."""

import io
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.errors import AudioError

FUZZ = Path(__file__).parents[2] / "tools" / "fuzz" / "fuzz_audio.py"


def test_damaged_files_give_audio_or_an_error_and_never_crash_or_hang():
    ended = subprocess.run(
        [sys.executable, FUZZ, "--inputs", "300", "--first", "1000000", "--jobs", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("300 inputs from ")


def test_what_is_no_audio_error_is_a_finding(tmp_path):
    """The search must be able to find something."""
    broken = tmp_path / "as2d_cli"
    for package in (broken, broken / "domain", broken / "audio"):
        package.mkdir()
        (package / "__init__.py").touch()
    (broken / "domain" / "errors.py").write_text("class AudioError(Exception):\n    message = ''\n")
    (broken / "audio" / "stream.py").write_text(
        "import os\n"
        "def open_audio(path):\n"
        "    size = os.path.getsize(path)\n"
        "    if size % 3 == 0:\n"
        "        os.abort()\n"
        "    raise ValueError(size)\n"
    )
    ended = subprocess.run(
        [sys.executable, FUZZ, "--inputs", "8", "--jobs", "1"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert ended.returncode == 1
    assert "crash: exit code -6" in ended.stdout
    assert "ValueError" in ended.stdout


def test_a_size_in_a_damaged_file_makes_nobody_take_as_much_memory():
    class Watched(io.BytesIO):
        most = 0

        def read(self, size=-1):
            self.most = max(self.most, size)
            return super().read(size)

    long_name = b"FORM" + struct.pack(">I", 40) + b"8SVXNAME" + struct.pack(">I", 1 << 28) + bytes(20)
    file = Watched(long_name)
    with pytest.raises(AudioError, match="not audio, or too damaged to open"):
        open_audio(file)
    assert 0 < file.most <= 1 << 20
