import os

import pytest

from as2d_cli.domain.errors import OutputError
from as2d_cli.system.atomic_files import PART, read_sealed, write_sealed, write_text_atomic, write_whole


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


def test_a_file_is_written_as_utf_8_without_bom_or_carriage_returns(tmp_path):
    write_text_atomic(tmp_path / "new" / "a.srt", "ñ語🎤\nx\n")
    assert (tmp_path / "new" / "a.srt").read_bytes() == "ñ語🎤\nx\n".encode()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.srt"]


def test_half_a_character_never_reaches_a_file(tmp_path):
    write_text_atomic(tmp_path / "a.txt", "caf\udcc3 \ud83d!")
    assert (tmp_path / "a.txt").read_text("utf-8") == "caf !"


def test_an_output_is_replaced_whole(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("a much longer text than the new one")
    write_text_atomic(target, "new")
    assert target.read_text() == "new"


def test_an_output_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_text_atomic(tmp_path / "a.txt", "")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_failed_write_leaves_nothing_behind_and_names_the_file(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="taken: cannot be written") as caught:
        write_text_atomic(tmp_path / "taken", "text")
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        write_text_atomic(tmp_path / "file" / "a.txt", "text")
