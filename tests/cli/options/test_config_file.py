"""The configuration file: where it is, and that typos in it are told."""

from pathlib import Path

import platformdirs
import pytest

from as2d_cli.cli.options.config_file import config_path, read_config
from as2d_cli.domain.errors import RequestError
from as2d_cli.models.registry import load_registry
from as2d_cli.system.paths import cache_root

KINDS = {"model": str, "output_format": str, "threads": int, "json": bool}


@pytest.fixture
def write(tmp_path, monkeypatch):
    def write(text):
        (tmp_path / "config.toml").write_text(text)
        monkeypatch.setenv("AS2D_CONFIG", str(tmp_path / "config.toml"))

    return write


def test_values_are_read_dashes_are_underscores_and_lists_are_joined(write):
    write('\ufeffmodel = "m"\noutput-format = ["srt", "json"]\nthreads = 2\njson = true')
    assert read_config(KINDS) == {"model": "m", "output_format": "srt,json", "threads": 2, "json": True}


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ('modle = "m"', "modle: unknown key", "did you mean 'model'?"),
        ('threads = "four"', "threads: expected a whole number, found a text ('four')", ""),
        ("threads = true", "threads: expected a whole number, found true or false (True)", ""),
        ("json = 1", "json: expected true or false, found a whole number (1)", ""),
        ("output-format = [1]", "output_format: expected a list of texts", ""),
        ("model = ", "not valid TOML", ""),
        ("[transcribe]\n", "transcribe: unknown key", ""),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error_that_names_file_and_key(write, tmp_path, text, said, hint):
    write(text)
    with pytest.raises(RequestError) as caught:
        read_config(KINDS)
    assert caught.value.message.startswith(str(tmp_path / "config.toml"))
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_missing_file_is_an_error_only_if_it_was_named(monkeypatch, tmp_path):
    monkeypatch.setenv("AS2D_CONFIG", "x" * 5_000)
    with pytest.raises(RequestError, match="cannot be read: File name too long"):
        read_config(KINDS)
    monkeypatch.setenv("AS2D_CONFIG", str(tmp_path / "gone.toml"))
    with pytest.raises(RequestError, match=r"gone\.toml: cannot be read: No such file"):
        read_config(KINDS)
    monkeypatch.delenv("AS2D_CONFIG")
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *names, **options: tmp_path)
    assert config_path() == tmp_path / "config.toml"
    assert read_config(KINDS) == {}
    (tmp_path / "config.toml").write_text("threads = 3")
    assert read_config(KINDS) == {"threads": 3}


def test_without_a_home_folder_none_is_made_in_the_current_one(monkeypatch):
    monkeypatch.delenv("AS2D_CONFIG")
    monkeypatch.delenv("AS2D_CACHE_DIR", raising=False)
    for kind in ("user_config_path", "user_cache_path"):  # as platformdirs answers where nobody knows one
        monkeypatch.setattr(platformdirs, kind, lambda *names, **options: Path("~/.x/as2d"))
    for place in (config_path, cache_root, load_registry):
        with pytest.raises(RequestError, match="no home folder"):
            place()


def test_relative_folders_in_the_environment_hold_for_every_process(monkeypatch):
    monkeypatch.delenv("AS2D_CACHE_DIR", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *names, **options: Path("cache/as2d"))
    assert cache_root() == Path.cwd() / "cache/as2d"


def test_an_empty_variable_means_no_file(monkeypatch):
    monkeypatch.setenv("AS2D_CONFIG", "")
    assert (config_path(), read_config(KINDS)) == (None, {})
    monkeypatch.setenv("AS2D_CONFIG", "~/as2d.toml")
    assert config_path() == Path.home() / "as2d.toml"
    monkeypatch.setenv("AS2D_CONFIG", "~nobody-of-that-name/as2d.toml")
    with pytest.raises(RequestError, match=r"~nobody-of-that-name/as2d\.toml: nobody of that name"):
        config_path()
