"""The registry: what is shipped, how a user's file is merged, how errors read."""

import json
from pathlib import Path

import pytest

from as2d_cli.domain.errors import RegistryError
from as2d_cli.models.registry import load_registry
from as2d_cli.models.sources import HuggingFaceSource, NoSource, PathSource, PypiSource, is_plain_name

PATH_MODEL = """
schema = 1
[models.mine]
plugin = "whisper"
role = "drafter"
source = { kind = "path", directory = "weights", files = ["model.bin"] }
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.delenv("AS2D_MODELS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def write(text: str) -> Path:
        file = tmp_path / "own.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def refusal(file: Path) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        load_registry(file)
    assert str(file) in caught.value.message
    return caught.value


def test_the_default_pair_comes_from_the_package_index_and_needs_no_hub():
    pair = load_registry().pair()
    assert (pair.target, pair.drafter) == ("whisper-base", "whisper-tiny.en")
    for name in (pair.target, pair.drafter):
        assert isinstance(load_registry().model(name).source, PypiSource)


def test_what_models_can_do_is_known_before_they_are_fetched():
    for name, entry in load_registry().models.items():
        if entry.plugin != "whisper" or entry.shape_of:
            continue
        english_only = name.endswith(".en") or name.startswith("distil") or "turbo" in name
        assert entry.does("translate") is not english_only, name
        assert entry.does("transcribe")


def test_a_users_file_can_say_what_a_model_does(write):
    assert load_registry(write(PATH_MODEL)).model("mine").does("translate")
    own = load_registry(write(PATH_MODEL + 'tasks = ["transcribe"]'))
    assert not own.model("mine").does("translate")
    changed = load_registry(write('schema = 1\n[models.whisper-base]\ntasks = ["transcribe"]'))
    assert not changed.model("whisper-base").does("translate")
    error = refusal(write(PATH_MODEL + 'tasks = ["translat"]'))
    assert "[models.mine]: tasks: 'translat' is not possible here" in error.message


def test_every_shipped_whisper_model_names_the_files_that_its_plugin_needs():
    for entry in load_registry().models.values():
        if entry.plugin != "whisper" or entry.shape_of:
            continue
        names = set(entry.source.file_names)
        assert {"config.json", "tokenizer.json"} < names, entry.name
        assert names & {"model.bin", "model.safetensors"}, entry.name
        if isinstance(entry.source, PypiSource):
            assert set(entry.sha256) == names, f"{entry.name}: packages are checked file by file"


def test_the_shipped_file_covers_the_other_whisper_sizes_and_distil_whisper():
    sources = [entry.source for entry in load_registry().models.values()]
    repos = {source.repo for source in sources if isinstance(source, HuggingFaceSource)}
    assert {
        "openai/whisper-large-v3-turbo",
        "openai/whisper-small",
        "distil-whisper/distil-large-v3",
    } <= repos


def test_a_relative_path_starts_at_the_folder_of_the_file_that_names_it(write, tmp_path):
    entry = load_registry(write(PATH_MODEL)).model("mine")
    assert entry.source == PathSource(tmp_path / "weights", ("model.bin",))
    assert entry.role == "drafter"
    assert entry.fits("drafter")
    assert not entry.fits("target")


def test_a_table_without_source_changes_only_the_keys_it_gives(write):
    shipped = load_registry().model("whisper-base")
    file = write("schema = 1\n[models.whisper-base.options]\ndecoder_bits = 32\n")
    changed = load_registry(file).model("whisper-base")
    assert changed.options == {"decoder_bits": 32}
    assert (changed.source, changed.sha256) == (shipped.source, shipped.sha256)


def test_a_table_with_source_replaces_the_shipped_model_as_a_whole(write):
    file = write(PATH_MODEL.replace("[models.mine]", "[models.whisper-base]").replace("drafter", "any"))
    replaced = load_registry(file).model("whisper-base")
    assert isinstance(replaced.source, PathSource)
    assert replaced.sha256 == {}
    assert replaced.options == {}


def test_a_model_may_need_no_files_at_all(write):
    file = write('schema = 1\n[models.m]\nplugin = "scripted"\nrole = "any"\nsource = { kind = "none" }\n')
    assert load_registry(file).model("m").source == NoSource()


def test_a_user_can_set_another_default_pair(write):
    pair = '[pairs.own]\ntarget = "whisper-small"\ndrafter = "mine"\n'
    registry = load_registry(write('default_pair = "own"\n' + PATH_MODEL + pair))
    assert registry.pair().drafter == "mine"
    assert registry.pair("whisper-base+tiny.en").target == "whisper-base"


def test_a_user_can_set_another_default_reader(write):
    assert load_registry().model(load_registry().default_reader).does("ask")
    assert load_registry(write('default_reader = "mine"\n' + PATH_MODEL)).default_reader == "mine"


def test_a_model_says_which_one_it_is_the_shape_of(write):
    models = load_registry().models
    assert {name for name, entry in models.items() if entry.shape_of} == {
        name for name in models if name.endswith("-shape")
    }
    assert all(entry.shape_of in models for entry in models.values() if entry.shape_of)
    changed = write('schema = 1\nmodels."qwen3-asr-1.7b-shape".shape_of = "other"\n')
    assert load_registry(changed).model("qwen3-asr-1.7b-shape").shape_of == "other"


def test_the_environment_names_the_users_file(write, monkeypatch):
    path = write(PATH_MODEL)
    monkeypatch.setenv("AS2D_MODELS", str(path))
    assert "mine" in load_registry().models
    monkeypatch.setenv("HOME", str(path.parent))  # no shell looks into a quoted value
    monkeypatch.setenv("AS2D_MODELS", f"~/{path.name}")
    assert "mine" in load_registry().models


def test_a_users_file_that_is_named_but_missing_is_an_error(tmp_path):
    assert "cannot be read" in refusal(tmp_path / "absent.toml").message


def test_an_unknown_model_is_answered_with_the_nearest_name_and_the_place_of_ones_own(write, monkeypatch):
    own = write(PATH_MODEL)
    monkeypatch.setenv("AS2D_MODELS", str(own))
    with pytest.raises(RegistryError) as caught:
        load_registry().model("whisper-tiny.ne")
    assert "'whisper-tiny.ne'" in caught.value.message
    assert caught.value.hint == (
        f"did you mean 'whisper-tiny.en'? see: as2d models list; your own are read from {own}"
    )


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (PATH_MODEL.replace("plugin =", "plugn ="), "[models.mine]: plugn: unknown key"),
        (PATH_MODEL.replace('plugin = "whisper"', ""), "[models.mine]: plugin: missing key"),
        (
            PATH_MODEL.replace('"whisper"', "3"),
            "[models.mine]: plugin: expected a text, found a whole number (3)",
        ),
        (PATH_MODEL.replace('"drafter"', '"draftr"'), "[models.mine]: role: 'draftr' is not possible here"),
        (PATH_MODEL.replace('"path"', '"ftp"'), "[models.mine.source]: kind: 'ftp' is not possible here"),
        (PATH_MODEL.replace("directory", "folder"), "[models.mine.source]: folder: unknown key"),
        (PATH_MODEL.replace('"model.bin"', '"../model.bin"'), "'../model.bin' is not a plain relative name"),
        (PATH_MODEL.replace("models.mine", 'models."../mine"'), "cannot be a model name"),
        (PATH_MODEL.replace("models.mine", f"models.{'m' * 101}"), "cannot be a model name"),
        (PATH_MODEL.replace("models.mine", "models.nul"), "cannot be a model name"),
        (
            PATH_MODEL + '[models.mine.sha256]\n"model.bin" = "12"',
            "[models.mine.sha256]: model.bin: expected 64",
        ),
        (PATH_MODEL + f'[models.mine.sha256]\n"m.bin" = "{"0" * 64}"', "m.bin: the source has no such file"),
        (PATH_MODEL + "[models.mine.options]\na = {}", "[models.mine.options]: a: expected a text, a number"),
        (
            PATH_MODEL + '[pairs.p]\ntarget = "mine"\ndrafter = "mine"',
            "[pairs.p]: target: 'mine' is not a target",
        ),
        (
            PATH_MODEL + '[pairs.p]\ntarget = "x"\ndrafter = "mine"',
            "[pairs.p]: target: there is no model called",
        ),
        (
            PATH_MODEL.replace("schema = 1", 'schema = 1\ndefault_pair = "p"'),
            "default_pair: there is no pair",
        ),
        (
            PATH_MODEL.replace("schema = 1", 'schema = 1\ndefault_reader = "r"'),
            "default_reader: there is no model called 'r'",
        ),
        (
            PATH_MODEL.replace("schema = 1", "schema = 2"),
            "top level: schema: this version reads schema 1, found 2",
        ),
        (
            PATH_MODEL.replace("schema = 1", "schema = true"),
            "schema: expected a whole number, found true or false",
        ),
        (PATH_MODEL.replace("schema = 1", ""), "top level: schema: missing key"),
        ("schema = ", "not valid TOML"),
    ],
)
def test_a_fault_is_named_with_file_table_and_key(write, broken, expected):
    assert expected in refusal(write(broken)).message


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ('{ name = "--index", version = "1", folder = "d", files = ["a"] }', "name: expected a package name"),
        (
            '{ name = "p", version = ">=1", folder = "d", files = ["a"] }',
            "version: expected an exact version",
        ),
        (
            '{ name = "p", version = "1", folder = "/d", files = ["a"] }',
            "folder: '/d' is not a plain relative",
        ),
        ('{ name = "p", version = "1", folder = "d", files = [] }', "packages[0]]: files: the list is empty"),
        (
            '{ name = "p", version = "1", folder = "d", files = ["b"] }',
            "join]: out: 'a' is not among the files",
        ),
    ],
)
def test_a_package_source_is_checked_before_anything_is_fetched(write, packages, expected):
    source = (
        f'[models.m]\nplugin = "w"\nrole = "any"\n[models.m.source]\nkind = "pypi"\npackages = [{packages}]\n'
    )
    assert expected in refusal(write("schema = 1\n" + source + 'join = { out = ["a"] }')).message


@pytest.mark.parametrize("kind", ["path", "huggingface", "pypi"])
@pytest.mark.parametrize(
    "files", [["a", "A"], ["a", "a"], ["a", "a/b"], ["A/b", "a"], ["NUL"], ["a\x1b[2J"], ["../a"]]
)
def test_files_that_would_take_each_others_place_or_leave_it_are_refused(write, kind, files):
    given = {
        "path": 'directory = "d"',
        "huggingface": 'repo = "a/b"',
        "pypi": f'packages = [{{ name = "p", version = "1", folder = "d", files = {json.dumps(files)} }}]',
    }[kind]
    given += "" if kind == "pypi" else f", files = {json.dumps(files)}"
    text = f'schema = 1\n[models.m]\nplugin = "w"\nrole = "any"\nsource = {{ kind = "{kind}", {given} }}'
    message = refusal(write(text)).message
    assert "is not a plain relative name" in message or "is there twice, or beside a file in it" in message
    assert message.isprintable()


def test_a_file_nested_deeper_than_python_follows_is_an_error(write):
    assert "nested too deep" in refusal(write("a = " + "[" * 100_000)).message


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../x",
            "a/../x",
            "/x",
            "c:x",
            "a\\x",
            ".",
            "",
            "a//b",
            "a/",
            "a\0b",
            "a\nb",
            "\u202egnp",
            "\ud800",
        ),
        *("NUL", "con.txt", "a/COM1.bin", "lpt9", "aux ", "a.", "a ", "a /b", "x" * 256, "a*", "a?"),
    ],
)
def test_a_name_that_could_leave_its_folder_is_not_plain(name):
    assert not is_plain_name(name)
