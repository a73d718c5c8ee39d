"""Pipes and devices in the place of files: refused or read, but not waited for in vain."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from as2d_cli.batch import resume
from as2d_cli.batch.inputs import find_inputs
from as2d_cli.cli.options.config_file import read_config
from as2d_cli.cli.options.request import read_list
from as2d_cli.domain.errors import ModelError, RegistryError, RequestError
from as2d_cli.models import cache
from as2d_cli.models.fetch import fetch
from as2d_cli.models.registry import ModelEntry, load_registry
from as2d_cli.models.sources import PathSource
from as2d_cli.profile import store
from as2d_cli.system import special_files
from as2d_cli.system.atomic_files import sha256_of
from as2d_cli.system.json_files import read_model_json
from as2d_cli.system.special_files import open_file_only, read_any, read_file_only

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.fixture(params=["pipe", "zero", "folder", "circle"])
def no_file(request, tmp_path):
    """Make what is there and no file."""
    path = tmp_path / "odd"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if request.param == "zero" else path)
    return path


def written_to(pipe, content, after_s=0.0):
    def write():
        with pipe.open("wb", buffering=0) as file, suppress(BrokenPipeError):
            time.sleep(after_s)
            file.write(content)

    threading.Thread(target=write).start()
    return pipe


def test_where_only_a_file_makes_sense_nothing_else_is_opened(no_file):
    for read in (open_file_only, read_file_only, sha256_of, resume.digest_of, store.read):
        with pytest.raises(OSError, match=r"is a pipe or a device|Is a directory|symbolic links"):
            read(no_file)
    with pytest.raises(ModelError, match="missing or broken"):
        read_model_json(no_file)


def test_a_model_whose_manifest_or_file_is_no_file_is_not_whole(tmp_path):
    (tmp_path / "empty.bin").touch()
    cache.write_manifest(tmp_path)
    assert cache.is_whole(tmp_path)
    (tmp_path / "empty.bin").unlink()
    os.mkfifo(tmp_path / "empty.bin")
    assert not cache.is_whole(tmp_path)
    assert cache.damaged_files(tmp_path) == ["empty.bin"]
    (tmp_path / "manifest.json").unlink()
    os.mkfifo(tmp_path / "manifest.json")
    assert not cache.is_whole(tmp_path)


def test_a_record_that_is_a_pipe_is_no_record(tmp_path, monkeypatch):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path))
    content = resume.Content(1, 1, "a")
    resume.remember(resume.Record("/a.txt", "/a.wav", content, "r", "b"))
    (record,) = tmp_path.rglob("*.json")
    record.unlink()
    os.mkfifo(record)
    assert resume.record_of(Path("/a.txt")) is None


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_files_of_a_model_are_files(tmp_path, kind):
    (tmp_path / "got").mkdir()
    os.mkfifo(tmp_path / "part") if kind == "pipe" else (tmp_path / "part").mkdir()
    entry = ModelEntry("little", "toy", "any", PathSource(tmp_path, ("part",)))
    with pytest.raises(ModelError, match=r"'little': .*part: is not a file"):
        fetch(entry, tmp_path / "got")


def test_lists_settings_and_registries_may_come_through_a_pipe(pipe, monkeypatch):
    assert read_list(str(written_to(pipe, b"a.wav\nb.wav\n"))) == ["a.wav", "b.wav"]
    monkeypatch.setenv("AS2D_CONFIG", str(written_to(pipe, b'model = "m"\r\n')))
    assert read_config({"model": str}) == {"model": "m"}
    registry = b'schema = 1\n[models.mine]\nplugin = "toy"\nrole = "any"\nsource = { kind = "none" }'
    monkeypatch.setenv("AS2D_MODELS", str(written_to(pipe, registry)))
    assert "mine" in load_registry().models


def test_whoever_has_a_pipe_open_is_waited_for(pipe, monkeypatch):
    monkeypatch.setattr(special_files, "_PATIENCE_S", 0.1)
    written_to(pipe, b"late", after_s=0.5)
    with pipe.open("rb"):  # the other end is open before the clock starts
        assert read_any(pipe) == b"late"


def test_what_is_written_just_after_a_look_is_read(pipe, monkeypatch):
    read = os.read

    def look(descriptor, size):
        monkeypatch.setattr(os, "read", read)
        nothing = read(descriptor, size)
        pipe.write_bytes(b"just now")
        return nothing

    monkeypatch.setattr(os, "read", look)
    assert read_any(pipe) == b"just now"


def test_a_pipe_into_which_nothing_was_written_is_empty_at_once():
    reader, writer = os.pipe()
    os.close(writer)
    began = time.monotonic()
    assert read_any(Path(f"/dev/fd/{reader}")) == b""
    assert time.monotonic() - began < special_files._PATIENCE_S
    os.close(reader)


def test_a_pipe_that_nobody_opens_is_given_up(pipe, monkeypatch):
    monkeypatch.setattr(special_files, "_PATIENCE_S", 0.1)
    with pytest.raises(RequestError, match="the list cannot be read: a pipe that nothing was written to"):
        read_list(str(pipe))
    with pytest.raises(RegistryError, match="a pipe that nothing was written to"):
        load_registry(pipe)
    monkeypatch.setenv("AS2D_CONFIG", str(pipe))
    with pytest.raises(RequestError, match="a pipe that nothing was written to"):
        read_config({})


def test_what_has_no_end_is_not_read_for_ever(monkeypatch, pipe):
    monkeypatch.setattr(special_files, "MOST_BYTES", 1 << 22)
    with pytest.raises(RequestError, match="has no end"):
        read_list("/dev/zero")
    with pytest.raises(RegistryError, match="has no end"):
        load_registry(written_to(pipe, b"#" * (1 << 23)))
    monkeypatch.setenv("AS2D_CONFIG", "/dev/null")
    assert read_config({}) == {}


def test_what_is_written_into_a_pipe_in_a_folder_is_left_to_whom_it_is_meant_for(tmp_path, sound):
    sound("folder/a.wav")
    os.mkfifo(tmp_path / "folder" / "control")
    descriptor = os.open(tmp_path / "folder" / "control", os.O_RDWR)
    os.write(descriptor, b"for another")
    found = find_inputs([str(tmp_path / "folder")])
    assert [one.path.name for one in found.found] == ["a.wav"]
    assert os.read(descriptor, 100) == b"for another"
    os.close(descriptor)
