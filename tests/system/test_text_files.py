import pytest

from as2d_cli.domain.errors import OutputError
from as2d_cli.system.text_files import write_atomic


def test_a_file_is_written_as_utf_8_without_bom_or_carriage_returns(tmp_path):
    write_atomic(tmp_path / "new" / "a.srt", "ñ語🎤\nx\n")
    assert (tmp_path / "new" / "a.srt").read_bytes() == "ñ語🎤\nx\n".encode()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.srt"]


def test_half_a_character_never_reaches_a_file(tmp_path):
    write_atomic(tmp_path / "a.txt", "caf\udcc3 \ud83d!")
    assert (tmp_path / "a.txt").read_text("utf-8") == "caf !"


def test_an_output_is_replaced_whole(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("a much longer text than the new one")
    write_atomic(target, "new")
    assert target.read_text() == "new"


def test_an_output_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_atomic(tmp_path / "a.txt", "")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_failed_write_leaves_nothing_behind_and_names_the_file(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="taken: cannot be written") as caught:
        write_atomic(tmp_path / "taken", "text")
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        write_atomic(tmp_path / "file" / "a.txt", "text")
