"""Files that are not on this machine; the store of these tests lies in memory."""

from pathlib import Path

import pytest

from as2d_cli.addresses import absolute, address, copy, exists, files_in, located, put, reach, size_and_time
from as2d_cli.batch import Batch
from as2d_cli.errors import RequestError
from as2d_cli.inputs import find_inputs
from as2d_cli.outputs import plan
from as2d_cli.printable import printable
from as2d_cli.registry import load_registry
from as2d_cli.requests import BatchRequest


@pytest.fixture(autouse=True)
def store():
    import fsspec

    memory = fsspec.filesystem("memory")
    yield memory
    memory.store.clear()


def run(*given, **options):
    registry = load_registry()
    request = BatchRequest(find_inputs(given).found, registry.model("speaker"), threads=1, **options)
    return list(Batch(request).run())


@pytest.mark.parametrize("text", ["s3://bucket/a b.wav", "https://host/talks/a.mp3", "memory://a/b"])
def test_an_address_survives_being_a_path(text):
    assert address(Path(text)) == absolute(Path(text)) == printable(str(Path(text))) == text
    assert address(Path(text).parent / "c.txt") == text.rpartition("/")[0] + "/c.txt"


@pytest.mark.parametrize("text", ["/a/b.wav", "a:b.wav", "C:/a.wav", "-", "Ärger:/x"])
def test_a_path_of_this_machine_is_no_address(text):
    assert address(Path(text)) is None


def test_file_addresses_are_paths_of_this_machine(tmp_path):
    assert located(f"file://{tmp_path}/a.wav") == tmp_path / "a.wav"


def test_folders_patterns_and_single_files_are_found_in_order_with_their_place(sound):
    for name in ("b.wav", "a.wav", "below/c.wav", ".hidden.wav", "notes.md"):
        put(f"memory://talks/{name}", sound("a.wav").read_bytes() if name.endswith("wav") else b"text")
    found = find_inputs(["memory://talks"])
    assert [(address(one.path), str(one.subfolder)) for one in found.found] == [
        ("memory://talks/a.wav", "."),
        ("memory://talks/b.wav", "."),
        ("memory://talks/below/c.wav", "below"),
    ]
    assert found.notes == ("memory://talks: ignored 1 file that is no audio",)
    assert len(find_inputs(["memory://talks/*.wav"]).found) == 2
    assert files_in("memory://talks/a.wav") is None
    (missing,) = find_inputs(["memory://talks/*.mp3"]).found
    assert "nothing matches" in missing.error.message


def test_what_is_put_can_be_read_and_measured():
    put("memory://a/b.txt", b"text")
    held = bytearray()
    copy("memory://a/b.txt", held.extend)
    assert bytes(held) == b"text"
    size, time_ns = size_and_time("memory://a/b.txt")
    assert size == 4
    assert time_ns > 1.6e18
    assert exists(Path("memory://a/b.txt"))
    assert not exists(Path("memory://a/c.txt"))


def test_errors_of_whatever_kind_are_of_the_system():
    with pytest.raises(OSError, match="unknown"):
        reach("unknown://host/a")
    with pytest.raises(FileNotFoundError):
        copy("memory://no/such", print)
    with pytest.raises(OSError, match="https is for reading only"):
        put("https://host/a.txt", b"")


def test_an_address_that_leads_nowhere_fails_by_itself(scripted, sound):
    put("memory://talks/a.wav", sound("a.wav").read_bytes())
    put("memory://talks/empty.wav", b"")
    gone, empty, whole = run("memory://talks/gone.wav", "memory://talks/empty.wav", "memory://talks/a.wav")
    assert gone.error.message == "memory://talks/gone.wav: no such file"
    assert "the file is empty" in empty.error.message
    assert whole.transcript.text


def test_outputs_beside_a_far_input_and_a_rerun(scripted, sound, store):
    put("memory://talks/a.wav", sound("a.wav").read_bytes())
    (here,) = run(str(sound("a.wav")))
    (made,) = run("memory://talks/a.wav", formats=("txt",))
    assert [address(path) for path in made.written] == ["memory://talks/a.txt"]
    assert store.cat_file("/talks/a.txt").decode() == here.transcript.text + "\n"
    assert run("memory://talks/a.wav", formats=("txt",))[0].is_skipped
    put("memory://talks/a.wav", sound("b.wav").read_bytes())
    (changed,) = run("memory://talks/a.wav", formats=("txt",))
    assert changed.transcript.text != here.transcript.text
    put("memory://talks/a.txt", b"edited")
    (kept,) = run("memory://talks/a.wav", formats=("txt",))
    assert kept.notes[0].startswith("kept a.txt: changed since")


def test_where_nothing_can_be_written_is_said_before_any_work(sound):
    (beside,) = plan(find_inputs(["https://host/a.wav"]).found, ("txt",), None)
    assert beside.error.message == "https://host: cannot be written to: https is for reading only"
    with pytest.raises(RequestError, match=r"unknown://host: cannot be reached"):
        plan(find_inputs([str(sound("a.wav"))]).found, ("txt",), Path("unknown://host"))
