from pathlib import Path

from as2d_cli.bench.run import provenance as module
from as2d_cli.bench.run.provenance import commit, provenance
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource


def model(name, folder):
    return ModelRef(ModelEntry(name, "scripted", "any", NoSource(), options={"seed": 1}), Path(folder), 2)


def test_program_machine_models_and_moment_are_told():
    told = provenance(
        model("speaker", "cache/speaker-12ab"), [model("hearer", "cache/hearer-34cd")], "as2d bench x"
    )
    assert told["target"] == {
        "name": "speaker",
        "files": "speaker-12ab",
        "options": {"seed": 1},
        "threads": 2,
    }
    assert [drafter["files"] for drafter in told["drafters"]] == ["hearer-34cd"]
    assert list(told["plugins"]) == ["scripted"]
    assert told["command"] == "as2d bench x"
    assert all(told[name] for name in ("as2d", "device", "os", "python", "utc"))
    assert told["runtimes"] == {}


def test_a_folder_outside_of_a_checkout_has_no_commit(tmp_path, monkeypatch):
    assert commit(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert commit(Path(module.__file__).parent) is None
