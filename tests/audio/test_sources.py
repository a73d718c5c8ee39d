import os
import threading
import time

import pytest

from as2d_cli.audio.sources import open_file
from as2d_cli.domain.errors import AudioError
from as2d_cli.system import special_files


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(AudioError, match=r"gone\.wav: no such file"):
        open_file(tmp_path / "gone.wav")


def test_a_directory_is_not_a_file(tmp_path):
    with pytest.raises(AudioError, match="is a directory"):
        open_file(tmp_path)


def test_an_empty_file_is_an_error(tmp_path):
    (tmp_path / "empty.wav").touch()
    with pytest.raises(AudioError, match="the file is empty"):
        open_file(tmp_path / "empty.wav")


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b"])
def test_a_name_no_file_can_have_is_one_line(tmp_path, name):
    with pytest.raises(AudioError, match="cannot be opened") as caught:
        open_file(tmp_path / name)
    assert caught.value.message.isprintable()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs devices")  # noqa: PTH110
def test_an_endless_device_is_refused(tmp_path):
    (tmp_path / "endless.wav").symlink_to("/dev/zero")
    with pytest.raises(AudioError, match="device or socket"):
        open_file(tmp_path / "endless.wav")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"x" * 300_000,))
    writer.start()
    file, _, ours, _ = open_file(pipe)
    writer.join()
    assert ours
    file.seek(0)
    assert len(file.read()) == 300_000
    file.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_without_a_writer_does_not_hang(tmp_path, monkeypatch):
    usual_s = special_files._PATIENCE_S
    monkeypatch.setattr(special_files, "_PATIENCE_S", 0.2)
    os.mkfifo(tmp_path / "pipe")
    began = time.monotonic()
    with pytest.raises(AudioError, match="a pipe that nothing was written to"):
        open_file(tmp_path / "pipe")
    assert time.monotonic() - began < usual_s


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_whoever_has_a_named_pipe_open_may_take_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(special_files, "_PATIENCE_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)  # a slow download

    def write():
        os.write(writer, b"x")
        os.close(writer)

    threading.Timer(0.6, write).start()
    file, *_ = open_file(tmp_path / "pipe")
    assert file.seek(0) == 0
    assert file.read() == b"x"
    file.close()
