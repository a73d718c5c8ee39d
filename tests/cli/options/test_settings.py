"""Flags, settings and keywords that come of the options that plugins declare."""

import pytest

from as2d_cli import RequestError, transcribe
from as2d_cli.cli.options.settings import declared_model_options

CHOIR = """
import pathlib
pathlib.Path(__file__).with_name("imported").touch()
from as2d_cli.plugin import ModelOption
VOICE = ModelOption(("low", "high"), "How deep it speaks.", "has only one voice")
"""


@pytest.fixture
def choir(tmp_path, monkeypatch):
    """A package with a plugin that declares an option, and two that are of no use."""
    folder = tmp_path / "choir"
    info = folder / "choir-1.dist-info"
    info.mkdir(parents=True)
    (folder / "choir.py").write_text(CHOIR)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: choir\nVersion: 1\n")
    declared = "voice = choir:VOICE\nbroken = choir:BROKEN\nno_vad = choir:VOICE\n"
    (info / "entry_points.txt").write_text(f"[as2d.v1]\nchoir = choir\n[as2d.v1.options]\n{declared}")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def test_a_declared_option_is_a_flag_with_help_beside_those_of_the_models(as2d, choir):
    helped = as2d("transcribe", "--help").out
    assert "--voice low|high" in helped
    assert "How deep it speaks." in helped
    assert helped.index("--drafter") < helped.index("--context") < helped.index("--voice")
    assert helped.index("--voice") < helped.index("--language")
    assert all("--voice" in as2d(command, "--help").out for command in ("translate", "ask"))


def test_flag_environment_and_file_choose_it(as2d, scripted, sound, choir, tmp_path):
    (tmp_path / "config.toml").write_text('voice = "high"\n')
    told = "model 'speaker' has only one voice"
    file = {"AS2D_CONFIG": str(tmp_path / "config.toml")}
    assert told in as2d("transcribe", sound(), **file).err
    assert told in as2d("transcribe", sound(), AS2D_VOICE="high").err
    assert told in as2d("transcribe", sound(), "--voice", "low").err
    refused = as2d("transcribe", sound(), "--voice", "deep", **file)
    assert (refused.code, "there is no voice 'deep'" in refused.err) == (2, True)
    shown = as2d("config", "show", **file).out
    assert f"file {tmp_path / 'config.toml'}" in next(line for line in shown.splitlines() if "voice" in line)


def test_a_broken_declaration_costs_a_warning_and_not_the_run(as2d, scripted, sound, choir):
    ended = as2d("transcribe", sound())
    assert ended.code == 0
    assert ended.out
    warnings = [line for line in ended.err.splitlines() if "warning" in line]
    assert [line.partition(" cannot")[0] for line in warnings] == [
        "as2d: warning: option 'broken' (choir 1)",
        "as2d: warning: option 'no_vad' (choir 1)",
    ]
    assert "warning" not in as2d("transcribe", sound(), "--quiet").err


@pytest.mark.parametrize("arguments", [["--help"], ["models", "list"], ["plugins", "list"], ["bench", "-h"]])
def test_commands_that_work_on_no_audio_import_no_declaration(as2d, scripted, choir, arguments):
    assert as2d(*arguments).code == 0
    assert not (choir / "imported").exists()


def test_a_function_takes_it_as_a_keyword(scripted, sound):
    for refused, told in (
        ({"context": "fitted"}, "model 'speaker' has only one context"),
        ({"context": "half"}, "there is no context 'half'"),
        ({"contxt": "fitted"}, "there is no option 'contxt'"),
    ):
        with pytest.raises(RequestError, match=told):
            next(transcribe(sound(), **refused))
    (outcome,) = transcribe(sound(), drafter="hearer", context=None)
    assert outcome.transcript


def test_the_shipped_declarations_are_of_use():
    declared = declared_model_options()
    assert (declared.options.keys(), declared.warnings) == ({"backend", "context"}, ())
