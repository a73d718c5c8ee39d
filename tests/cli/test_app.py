"""The command as a whole: quick help, one-line errors, exit codes."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from as2d_cli import __version__
from as2d_cli.cli.app import _ending_with_code
from as2d_cli.cli.exit_codes import code_of_stop, ending_in_order, exit_code
from as2d_cli.domain.errors import (
    AudioError,
    DecodeError,
    ModelError,
    OutputError,
    PluginError,
    RegistryError,
    RequestError,
)

AS2D = Path(sys.executable).with_name("as2d")


def cpu_s(*command):
    """Return the processor time that a command takes."""

    def so_far_s():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = so_far_s()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return so_far_s() - before


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_take_little_more_than_the_library_of_the_command_line(option):
    both = [(cpu_s(AS2D, option), cpu_s(sys.executable, "-c", "import typer")) for _ in range(5)]
    ours, library = map(min, zip(*both, strict=True))  # the least: others use this machine, too
    assert ours < 3 * library


def test_help_loads_neither_numpy_nor_rich_nor_the_commands():
    code = (
        "import sys\nfrom as2d_cli.cli.app import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'rich', 'MNN', 'soundfile'}\n"
        "heavy |= {f'as2d_cli.cli.commands.{name}' for name in ('models', 'transcribe')}\n"
        "print(heavy & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "set()"
    assert "transcribe  " in run.stdout
    assert "models  " in run.stdout


def test_version_is_the_package_version(as2d):
    assert as2d("--version").out == f"as2d {__version__}\n"


def test_the_package_can_be_run_as_the_command(as2d, scripted, sound):
    source = sound("a.wav")
    run = subprocess.run(
        [sys.executable, "-m", "as2d_cli", "transcribe", source], check=False, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (0, as2d("transcribe", source).out)
    assert run.stdout


@pytest.mark.parametrize("command", ["transcribe", "models"])
def test_every_command_has_help(as2d, command):
    ended = as2d(command, "-h")
    assert ended.code == 0
    assert ended.out.startswith(f"Usage: as2d {command}")


def test_ctrl_c_while_modules_are_imported_ends_it_without_a_word(tmp_path):
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "as2d_cli", "--version"]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False, capture_output=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--nonsense"], ["transcribe"], ["transcribe", "--nonsense", "a.wav"], []]
)
def test_a_command_line_that_makes_no_sense_is_a_usage_error(as2d, arguments):
    ended = as2d(*arguments)
    assert ended.code == 2
    assert "Usage:" in ended.err + ended.out
    assert "Traceback" not in ended.err


def test_a_mistyped_command_is_answered_with_the_nearest_and_a_file_with_the_command_for_it(as2d, tmp_path):
    assert "No such command 'transcrbe'. Did you mean 'transcribe'?" in as2d("transcrbe", "a.wav").err
    talk = tmp_path / "my talk.wav"
    talk.touch()
    assert f"as2d transcribe '{talk}'" in as2d(str(talk)).err


def test_an_error_is_one_line_with_a_hint_and_no_traceback(as2d, scripted):
    ended = as2d("models", "path", "speakr")
    assert ended.code == 3
    lines = ended.err.splitlines()
    assert lines[0] == "as2d: error: there is no model called 'speakr'"
    assert lines[1].startswith("hint: did you mean 'speaker'?")
    assert len(lines) == 2


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_that_cannot_be_written_is_one_line_too(option):
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([AS2D, option], check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "as2d: error: standard output: No space left on device\n"
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([AS2D, option], check=False, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_folder_that_is_gone_is_named(scripted, sound, tmp_path):
    (gone := tmp_path / "gone").mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", code, AS2D, "transcribe", sound("a.wav")]
    ended = subprocess.run(command, cwd=gone, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "as2d: error: the current folder: No such file or directory\n" in ended.stderr


def test_debugging_shows_the_traceback(as2d, scripted):
    ended = as2d("models", "path", "speakr", AS2D_DEBUG="1")
    assert "Traceback" in ended.err
    assert "RegistryError: there is no model called 'speakr'" in ended.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AudioError, 1),
        (DecodeError, 1),
        (OutputError, 1),
        (RequestError, 2),
        (ModelError, 3),
        (PluginError, 3),
        (RegistryError, 3),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert exit_code(error("broken")) == code


def test_completion_for_a_shell_can_be_shown(as2d):
    ended = as2d("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert ended.code == 0
    assert "_AS2D_COMPLETE" in ended.out


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_a_command_in_order_and_is_told_from_others(number, code):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), ending_in_order():
        signal.raise_signal(number)
    assert code_of_stop() == code
    assert signal.getsignal(number) == before


@pytest.mark.parametrize(("cause", "ends"), [(KeyboardInterrupt(), True), (ValueError(), False)])
def test_ctrl_c_while_a_class_is_made_is_ctrl_c(cause, ends):
    """Python 3.10 and 3.11 wrap whatever `__set_name__` raises."""
    with pytest.raises(typer.Exit if ends else RuntimeError), _ending_with_code():
        raise RuntimeError("Error calling __set_name__ on 'Field' instance") from cause
