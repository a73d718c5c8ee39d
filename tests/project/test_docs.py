"""What the pages have users type, and what they say is there, is there. Figures are a matter of review."""

import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

import pytest
import soundfile
import typer
from typer.core import TyperGroup
from typer.main import get_command

from as2d_cli.cli.app import app
from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.options.config_file import read_config
from as2d_cli.cli.options.settings import all_setting_kinds
from as2d_cli.models.registry import load_registry
from as2d_cli.transcripts.formats import FORMATS

ROOT = Path(__file__).parents[2]
PATHS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in PATHS}
README, MODELS, USAGE = PAGES["README.md"], PAGES["docs/models.md"], PAGES["docs/usage.md"]


def typed(text):
    """Return the commands in a page's blocks for a shell and within its text, each as its words."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    commands = []
    for line in [*blocks.splitlines(), *re.findall(r"`((?:as2d|python) [^`]*)`", text)]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
        lexer.whitespace_split = True
        commands.append([])
        for word in lexer:
            if set(word) <= set("|&;") or word in ("as2d", "--"):
                commands.append([])
            commands[-1].append(Path(word).name if word.endswith("/as2d") else word)
    return [words for words in commands if words]


def options(words):
    return {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}


def test_every_command_of_ours_on_every_page_is_there_with_its_options():
    lines = [words for text in PAGES.values() for words in typed(text) if words[0] == "as2d"]
    assert len(lines) > 60
    for _, *words in lines:
        command = get_command(app)
        while words and isinstance(command, TyperGroup) and not words[0].startswith("-"):
            command = command.get_command(typer.Context(command), words[0])
            assert command is not None, words
            del words[0]
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        assert options(words) <= known | {"--help", "-h", "--install-completion"}, words


def test_every_script_on_every_page_is_there_with_its_options():
    lines = [words[1:] for text in PAGES.values() for words in typed(text) if words[0] == "python"]
    lines = [words for words in lines if words and words[0].endswith(".py")]
    assert len(lines) > 15
    for name, *words in lines:
        beside = (ROOT / name).parent.glob("*.py")
        text = (ROOT / name).read_text(encoding="utf-8") + "".join(map(Path.read_text, beside))
        assert {option for option in options(words) if f'"{option}"' not in text} == set(), name


def test_every_path_that_a_page_names_is_there():
    place = r"(?<![\w/])(?:plugins|tests|docs|tools|as2d_cli)/[^`\s<>):,;\"']*"
    named = {
        (page, path)
        for page, text in PAGES.items()
        for code in re.findall(r"```\w*\n.*?```|`[^`]+`", text, re.DOTALL)
        for path in re.findall(place, code)
        if "NNNN" not in path
    }
    assert len(named) > 40
    assert {one for one in named if not list(ROOT.glob(one[1].rstrip("./")))} == set()


def test_every_decision_that_a_page_names_is_there():
    numbers = {int(number) for text in PAGES.values() for number in re.findall(r"decision (\d+)", text)}
    pages = {int(path.name[:4]) for path in (ROOT / "docs" / "decisions").iterdir()}
    assert len(numbers) > 4
    assert numbers <= pages


def test_the_exit_codes_of_the_readme_are_all_that_there_are():
    table = README.partition("## Exit codes")[2].partition("`AS2D_DEBUG=1`")[0]
    cells = re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE)
    assert sorted(int(code) for cell in cells for code in cell.split(",")) == sorted(ExitCode)


@pytest.mark.parametrize("text", [README, USAGE])
def test_the_output_formats_are_listed_as_they_are(text):
    assert f"`{','.join(FORMATS)}` or `all`" in text


def test_the_settings_of_the_readme_can_be_set(tmp_path, monkeypatch):
    (example,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "config.toml").write_text(example, encoding="utf-8")
    monkeypatch.setenv("AS2D_CONFIG", str(tmp_path / "config.toml"))
    assert read_config(all_setting_kinds()) == {
        "language": "german",
        "output_format": "srt,json",
        "threads": 4,
    }


def test_every_variable_of_the_environment_is_told_and_every_one_told_is_read():
    sources = [*(ROOT / "as2d_cli").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]
    pattern = r"AS2D_[A-Z]+(?:_[A-Z]+)*"
    read = {name for path in sources for name in re.findall(pattern, path.read_text(encoding="utf-8"))}
    told = {name for text in PAGES.values() for name in re.findall(pattern, text)}
    settings = {f"AS2D_{name.upper()}" for name in all_setting_kinds()}
    assert read - settings <= told
    assert told <= read | settings | {"AS2D_OPTION"}


def test_the_programs_of_the_readme_run(scripted, sound, tmp_path, monkeypatch, capsys):
    files, kept = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    sound("recordings/a.wav")
    (tmp_path / "talk.mp3").write_text("no sound")
    monkeypatch.chdir(tmp_path)
    exec(files, {})
    first, *_, last = capsys.readouterr().out.splitlines()
    assert re.match(r"recordings/a\.wav 0\.0 +\w+", first)
    assert re.match(r"talk\.mp3 .*not audio", last)
    sound("recordings/a.wav").rename("talk.mp3")
    samples, _ = soundfile.read("talk.mp3", dtype="float32")
    exec(kept, {"samples": samples.repeat(3)})  # at 48 kHz
    *segments, whole = capsys.readouterr().out.splitlines()
    assert re.match(r"0\.0 s \w+", segments[0])
    assert whole.endswith(" ()")


def test_the_models_of_the_tables_are_those_of_the_registry_with_what_there_is_to_download():
    entries, listed, sizes, place = load_registry().models, set(), {}, None
    for line in MODELS.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        names = set(re.findall(r"`([^`]+)`", cells[1])) if len(cells) > 2 else set()
        if "model" in cells:
            place = cells.index("download") if "download" in cells else None
        elif names and place:
            listed |= {f"whisper{name}" if name.startswith("-") else name for name in names} - {".en"}
            if size := re.search(r"([\d.]+) ([MG])B", cells[place]):
                sizes[cells[1].split("`")[1]] = float(size[1]) * {"M": 1, "G": 1000}[size[2]]
    assert {name for name in listed if not any(fnmatch(one, name) for one in entries)} == set()
    patterns = {*listed, *(f"{name}.en" for name in listed), "*-shape", "*-hub", "lookup"}
    assert {name for name in entries if not any(fnmatch(name, one) for one in patterns)} == set()
    known = {name: entries[name].download_mb for name in sizes if entries[name].download_mb}
    assert len(known) >= 7
    assert {name: sizes[name] for name in known} == pytest.approx(known, rel=0.02)


def test_the_readmes_table_is_an_excerpt_of_the_measurements():
    rows = [line for line in README.partition("## Measured")[2].splitlines() if re.search(r"\d MB \|$", line)]
    commit = re.search(r"commit (\w{7})\b", README)[1]
    kept = PAGES["docs/benchmarks.md"]
    assert f"commit {commit}" in kept
    assert len(rows) >= 5
    for row in rows:
        cells = [cell.strip().removesuffix(" s").removesuffix(" MB") for cell in row.split("|")[2:-1]]
        for wanted in ([*cells[:3], cells[5]], cells[3:5]):
            kept_rows = [{cell.strip(" *") for cell in line.split("|")} for line in kept.splitlines()]
            assert [one for one in kept_rows if one >= {*wanted}], row
