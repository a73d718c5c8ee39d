"""Settings: a flag goes before the environment, that before the file, that before the default."""

import json

import pytest

from as2d_cli.cli.options.parameters import COMMANDS
from as2d_cli.cli.options.settings import all_setting_kinds, setting_kinds


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write the configuration file."""

    def write(text):
        (tmp_path / "config.toml").write_text(text)
        monkeypatch.setenv("AS2D_CONFIG", str(tmp_path / "config.toml"))

    return write


def test_every_setting_can_be_set_by_file_and_environment_and_says_so(as2d, file, tmp_path):
    kinds = all_setting_kinds()
    assert {"model", "language", "threads", "output_format", "json", "progress"} <= set(kinds)
    assert not {"files", "files_from", "null", "help", "command"} & set(kinds)
    values = {str: ("word", '"word"'), int: ("3", "3"), bool: ("true", "true")}
    file("\n".join(f"{name.replace('_', '-')} = {values[kind][1]}" for name, kind in kinds.items()))
    settings = json.loads(as2d("config", "show", "--json").out)
    assert {settings[name]["source"] for name in kinds} == {f"file {tmp_path / 'config.toml'}"}
    assert settings["threads"]["value"] == 3
    environment = {f"AS2D_{name.upper()}": values[kind][0] for name, kind in kinds.items()}
    settings = json.loads(as2d("config", "show", "--json", **environment).out)
    assert all(settings[name]["source"] == f"environment AS2D_{name.upper()}" for name in kinds)


def test_an_option_is_of_one_kind_in_all_commands_that_have_it():
    kinds = all_setting_kinds()
    assert all(setting_kinds(options).items() <= kinds.items() for options in COMMANDS.values())


def test_without_settings_all_is_as_it_comes(as2d):
    lines = as2d("config", "show", AS2D_CACHE_DIR="elsewhere").out.splitlines()
    assert lines[0].split() == ["NAME", "VALUE", "FROM"]
    assert {line.split()[-1] for line in lines[1:-1]} == {"default"}
    assert lines[-1].split()[0] == "cache_dir"
    assert lines[-1].endswith("environment AS2D_CACHE_DIR")


def test_the_place_of_the_file_is_printed(as2d, file, tmp_path):
    file("")
    assert as2d("config", "path").out == f"{tmp_path / 'config.toml'}\n"
    ended = as2d("config", "path", AS2D_CONFIG="")
    assert (ended.code, "no file is read" in ended.err) == (2, True)


def test_flag_before_environment_before_file(as2d, scripted, sound, file):
    source = sound("a.wav")

    def language(*flags, **environment):
        return as2d("transcribe", source, "--json", *flags, **environment).records()[0]["language"]

    assert language() == "en"
    file('language = "german"')
    assert language() == "de"
    assert language(AS2D_LANGUAGE="fr") == "fr"
    assert language("--language", "en", AS2D_LANGUAGE="fr") == "en"
    assert language("--language", "auto") == "en"


def test_switches_of_the_file_can_be_switched_off(as2d, scripted, sound, file):
    file("json = true\nquiet = true")
    ended = as2d("transcribe", sound("a.wav"))
    assert json.loads(ended.out.splitlines()[0])["text"]
    assert ended.err == ""
    ended = as2d("transcribe", sound("a.wav"), "--no-json", "--verbose")
    assert not ended.out.startswith("{")
    assert "1 of 1 file done" in ended.err


def test_a_setting_that_is_of_no_use_this_time_is_no_error_but_a_flag_is(as2d, scripted, sound, file):
    file('compare = true\nword-timestamps = true\noverwrite = true\ndraft-tokens = "4"')
    assert as2d("transcribe", sound("a.wav"), "--drafter", "none").code == 0
    assert as2d("transcribe", sound("a.wav"), "--drafter", "none", "--compare").code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [("langauge = 'de'", "did you mean 'language'?"), ("json = 'yes'", "json: expected true")],
)
def test_a_fault_in_the_file_is_a_usage_error_but_help_still_works(as2d, scripted, sound, file, text, said):
    file(text)
    for command in (["transcribe", sound("a.wav")], ["config", "show"]):
        ended = as2d(*command)
        assert ended.code == 2
        assert said in ended.err
        assert "Traceback" not in ended.err
    assert as2d("transcribe", "--help").code == 0


def test_a_value_that_an_option_does_not_take_is_a_usage_error_wherever_it_comes_from(
    as2d, scripted, sound, file
):
    assert as2d("transcribe", sound("a.wav"), AS2D_THREADS="many").code == 2
    file("threads = 0")
    ended = as2d("transcribe", sound("a.wav"))
    assert ended.code == 2
    assert "--threads" in ended.err


def test_inputs_are_no_settings(as2d, scripted, sound, file):
    file("files = ['a.wav']")
    assert "files: unknown key" in as2d("transcribe", sound("a.wav")).err
    file("")
    assert as2d("transcribe", AS2D_FILES="a.wav", AS2D_FILES_FROM="list").code == 2
