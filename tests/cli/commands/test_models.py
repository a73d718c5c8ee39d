"""`as2d models`: results on stdout, messages on stderr, on a registry and a cache of the test's own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from as2d_cli.cli.commands.models import app
from as2d_cli.domain.errors import ModelError, RegistryError
from as2d_cli.models import cache

TOY_PLUGIN = Path(__file__).parents[2] / "data" / "toy_plugin"

REGISTRY = """
schema = 1
default_pair = "small"
[pairs.small]
target = "little"
drafter = "odd"
[models.little]
plugin = "toy"
role = "any"
source = { kind = "path", directory = "weights", files = ["a.txt"] }
[models.odd]
plugin = "toy"
role = "drafter"
source = { kind = "path", directory = "weights", files = ["a.txt"] }
[models.study]
plugin = "toy"
role = "any"
licence = "Study Licence"
commercial_use = false
source = { kind = "path", directory = "weights", files = ["a.txt"] }
[models.orphan]
plugin = "gone"
role = "any"
source = { kind = "none" }
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(TOY_PLUGIN)
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("AS2D_MODELS", str(tmp_path / "own.toml"))
    (tmp_path / "own.toml").write_text(REGISTRY)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "a.txt").write_text("some words")

    def run(*arguments: str, code: int = 0):
        result = CliRunner().invoke(app, arguments)
        if isinstance(result.exception, Exception) and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run


def rows(run) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in json.loads(run("list", "--json").stdout)}


def test_list_tells_what_is_known_and_what_is_in_the_cache(run):
    assert rows(run)["little"] == {
        "name": "little",
        "role": "any",
        "plugin": "toy",
        "source": "path",
        "cached": False,
        "bytes": 0,
        "licence": None,
        "commercial_use": True,
        "runs_as": "",
    }
    assert "whisper-base" in rows(run), "the shipped models are listed, too"
    run("pull", "little")
    assert rows(run)["little"]["cached"] is True
    assert rows(run)["little"]["bytes"] > 10
    assert rows(run)["odd"]["cached"] is False


def test_the_table_has_one_line_per_model_under_its_headings(run):
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "ROLE", "PLUGIN", "SOURCE", "CACHED", "SIZE", "LICENCE"]
    assert ["odd", "drafter", "toy", "path", "no", "-", "-"] in [line.split() for line in lines]


def test_list_says_what_models_run_on_here_if_asked(run):
    lines = run("list", "-v").stdout.splitlines()
    assert lines[0].split()[6:8] == ["RUNS", "ON"]
    (whisper,) = [line for line in lines if line.startswith("whisper-base ")]
    assert re.search(r"backend (openvino, precision (bf16|f32)|mnn, precision f32)", whisper)
    assert "RUNS ON" not in run("list").stdout


def test_list_goes_on_past_a_model_whose_plugin_is_gone(run):
    (cache.model_folder("orphan") / "0123456789ab").mkdir(parents=True)
    result = run("list")
    assert "orphan: there is no plugin called 'gone'" in result.stderr
    assert "little" in result.stdout


def test_pull_prints_the_folder_on_stdout_and_its_stages_on_stderr(run):
    result = run("pull", "little")
    folder = Path(result.stdout.strip())
    assert (folder / "inner" / "words").read_text() == "SOME WORDS"
    assert result.stderr == "converting little\n"
    assert run("path", "little").stdout == result.stdout
    assert run("pull", "little").stderr == ""


def test_pull_says_once_that_a_licence_forbids_commercial_use(run):
    assert "study: the licence, Study Licence, forbids commercial use" in run("pull", "study").stderr
    assert run("pull", "study").stderr == ""
    assert "commercial" not in run("pull", "odd").stderr


def test_the_list_shows_licences_and_what_they_forbid(run):
    lines = {line.split()[0]: line for line in run("list").stdout.splitlines()}
    assert lines["study"].endswith("Study Licence (no commercial use)")
    assert lines["whisper-base"].endswith("MIT")


def test_pull_without_names_takes_the_default_pair(run):
    assert len(run("pull").stdout.splitlines()) == 2
    assert [rows(run)[name]["cached"] for name in ("little", "odd")] == [True, True]


def test_pull_checks_all_names_before_it_fetches_anything(run):
    with pytest.raises(RegistryError, match="'litle'"):
        run("pull", "little", "litle")
    assert rows(run)["little"]["cached"] is False


def test_path_of_a_model_that_is_not_in_the_cache_says_how_to_get_it(run):
    with pytest.raises(ModelError, match="'little' is not in the cache") as caught:
        run("path", "little")
    assert caught.value.hint == "run: as2d models pull little"


def test_verify_passes_a_sound_cache_and_fails_at_a_changed_byte(run):
    folder = Path(run("pull", "little").stdout.strip())
    assert run("verify").stdout == f"little ({folder.name}): ok\n"
    (folder / "inner" / "words").write_text("SOME WORDz")
    assert run("verify", code=1).stdout == f"little ({folder.name}): damaged: inner/words\n"
    assert "damaged" in run("verify", "little", code=1).stdout


def test_verify_of_a_model_that_is_not_in_the_cache_is_an_error(run):
    with pytest.raises(ModelError, match="'little' is not in the cache"):
        run("verify", "little")


def test_remove_deletes_the_model_and_says_so_on_stderr(run):
    run("pull")
    result = run("remove", "little")
    assert (result.stdout, result.stderr) == ("", "as2d: little: removed\n")
    assert [rows(run)[name]["cached"] for name in ("little", "odd")] == [False, True]
    assert run("remove", "little").stderr == "as2d: little: was not in the cache\n"


def test_remove_deletes_a_model_that_the_registry_no_longer_knows(run):
    (cache.model_folder("forgotten") / "0123456789ab").mkdir(parents=True)
    run("remove", "forgotten")
    assert not cache.model_folder("forgotten").exists()


def test_a_model_behind_a_link_is_not_removed_and_the_reason_is_told(run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    cache.model_folder("little").parent.mkdir(parents=True, exist_ok=True)
    cache.model_folder("little").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match=r"little: cannot be deleted: .* symbolic link"):
        run("remove", "little")


@pytest.mark.parametrize("name", ["../weights", "unknown", ""])
def test_remove_of_an_unknown_name_is_an_error_and_deletes_nothing(run, tmp_path, name):
    with pytest.raises(RegistryError):
        run("remove", name)
    assert (tmp_path / "weights" / "a.txt").exists()


def test_the_commands_load_without_rich_display_numpy_or_a_model_runtime():
    slow = {"rich.progress", "numpy", "MNN", "filelock"}
    code = f"import sys; sys.path[:] = {sys.path}; import as2d_cli.cli.commands.models; "
    code += f"print({slow} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout == "set()\n"
