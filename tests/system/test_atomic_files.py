import os

import pytest

from as2d_cli.system.atomic_files import PART, read_sealed, write_sealed, write_whole


@pytest.mark.parametrize("lasting", [False, True])
def test_a_file_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path, lasting):
    path = tmp_path / "kept.json"
    path.write_bytes(b"before, and longer")
    write_whole(path, b"after", lasting=lasting)
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_put_in_its_place_leaves_it_as_it_was(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", b"content")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


def test_a_pipe_or_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="is a pipe or a device"):
            write_whole(tmp_path / name, b"content")
    assert (tmp_path / "link").is_fifo()


def test_it_is_made_in_the_staging_folder_under_a_name_that_tells_the_process(tmp_path, monkeypatch):
    staged = []
    monkeypatch.setattr("pathlib.Path.replace", lambda part, path: staged.append(part))
    (tmp_path / "deep").mkdir()
    write_whole(tmp_path / "deep" / "kept", b"", staging=tmp_path)
    (part,) = staged
    assert part.parent == tmp_path
    assert PART.fullmatch(part.name)[1] == str(os.getpid())


def test_what_is_sealed_is_read_as_it_was_written_or_not_at_all(tmp_path):
    path = tmp_path / "sealed"
    write_sealed(path, b"one\ntwo")
    assert read_sealed(path) == b"one\ntwo"
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole + b"x", whole.replace(b"w", b"v"), b"0" + whole):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged"):
            read_sealed(path)
