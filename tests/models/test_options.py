"""Options that plugins declare for their models: found, checked, handed to the models that have them."""

import sys

import pytest

from as2d_cli.domain.errors import RequestError
from as2d_cli.models.options import DeclaredOptions, ModelOption, declared_options, with_options
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource

VOICE = ModelOption(("low", "high"), "How deep it speaks.", "has only one voice")
SOURCE = f"""
from as2d_cli.plugin import ModelOption
VOICE = ModelOption({VOICE.choices}, {VOICE.help!r}, {VOICE.refusal!r})
NO_CHOICES = ModelOption((), "help", "has none")
NO_TEXTS = ModelOption((1, 2), "help", "has none")
NO_HELP = ModelOption(("a",), None, "has none")
TEXT = "low"
LOADING_OPTIONS = {{"voice", "stage_voice"}}
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package with a plugin of its name and these declarations, as far as anybody can tell."""

    def install(name, *declarations, source=SOURCE):
        (tmp_path / f"{name}.py").write_text(source)
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        groups = ["[as2d.v1]", f"{name} = {name}", "[as2d.v1.options]", *declarations]
        (folder / "entry_points.txt").write_text("\n".join(groups) + "\n")
        sys.modules.pop(name, None)
        monkeypatch.syspath_prepend(tmp_path)

    return install


def entry(plugin):
    return ModelEntry("little", plugin, "any", NoSource(), options={"size": 3})


def test_what_a_plugin_declares_is_an_option_of_its_models_alone(package):
    package("choir", "voice = choir:VOICE", "stage_voice = choir:VOICE")
    declared = declared_options()
    assert declared.options.keys() == {"backend", "context", "voice", "stage_voice"}
    assert (declared.options["voice"], declared.warnings) == (VOICE, ())
    chosen = with_options(entry("choir"), {"voice": "low", "stage_voice": "high", "context": None}, declared)
    assert chosen.options == {"size": 3, "voice": "low", "stage_voice": "high"}
    assert with_options(entry("choir"), {"voice": None}, declared) == entry("choir")
    with pytest.raises(RequestError, match="model 'little' has only one voice") as refused:
        with_options(entry("scripted"), {"stage_voice": "low"}, declared)
    assert refused.value.hint == "leave out --stage-voice"


def test_an_unknown_value_and_an_unknown_option_are_refused_with_what_there_is():
    declared = DeclaredOptions({"stage_voice": VOICE})
    with pytest.raises(RequestError, match="there is no stage voice 'deep'") as refused:
        with_options(entry("scripted"), {"stage_voice": "deep"}, declared)
    assert refused.value.hint == "stage voices: low, high"
    with pytest.raises(RequestError, match="there is no option 'stage_voise'") as refused:
        with_options(entry("scripted"), {"stage_voise": "low"}, declared)
    assert "did you mean 'stage_voice'?" in refused.value.hint


@pytest.mark.parametrize(
    ("declaration", "why"),
    [
        ("voice = choir:NOTHING", "cannot be imported: AttributeError"),
        ("voice = nowhere:VOICE", "cannot be imported: ModuleNotFoundError"),
        ("voice = choir", "it is no ModelOption with choices"),
        ("voice = choir:TEXT", "it is no ModelOption with choices"),
        ("voice = choir:NO_CHOICES", "it is no ModelOption with choices"),
        ("voice = choir:NO_TEXTS", "it is no ModelOption with choices"),
        ("voice = choir:NO_HELP", "help and refusal must be texts"),
        ("Voice! = choir:VOICE", "no such name can be a flag"),
        ("model = choir:VOICE", "as2d has an option of this name"),
        ("context = choir:VOICE", "another plugin has declared it"),
    ],
)
def test_a_broken_declaration_costs_a_warning_that_names_it_and_no_other_option(package, declaration, why):
    package("choir", declaration, "pitch = choir:VOICE")
    declared = declared_options(reserved={"model"})
    assert declared.options.keys() == {"backend", "context", "pitch"}
    assert declared.options["context"].choices == ("auto", "full", "fitted")
    (warning,) = declared.warnings
    name = declaration.partition(" ")[0]
    assert warning.startswith(f"warning: option {name!r} (choir 1) cannot be")
    assert why in warning


def test_one_that_fails_to_import_in_any_way_costs_a_warning(package):
    package("choir", "voice = choir:VOICE", source="raise SystemExit('not today')")
    declared = declared_options()
    assert declared.options.keys() == {"backend", "context"}
    assert "SystemExit: not today" in declared.warnings[0]


def test_a_package_whose_plugins_are_left_out_is_not_imported_for_its_options(package, monkeypatch):
    package("choir", "voice = choir:VOICE")
    monkeypatch.setenv("AS2D_LOAD_PLUGINS", "scripted,whisper")
    assert declared_options().options.keys() == {"backend", "context"}
    assert "choir" not in sys.modules


def test_two_packages_may_share_one_declaration(package):
    package("choir", "voice = choir:VOICE")
    package("duet", "voice = duet:VOICE")
    declared = declared_options()
    assert (declared.options.keys(), declared.warnings) == ({"backend", "context", "voice"}, ())
