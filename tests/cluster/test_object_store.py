"""Inputs and outputs in object stores and on the web, with both engines."""

import shutil
import socket
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from as2d_cli.batch.inputs import find_inputs
from as2d_cli.system import remote_files


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def s3(monkeypatch):
    """Start a store that speaks S3; return its file system."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield s3fs.S3FileSystem(endpoint_url=f"http://{host}:{port}", use_listings_cache=False)
    server.stop()


@pytest.fixture
def gs(monkeypatch):
    """Start a store that speaks Google's JSON API, with a bucket; return its file system."""
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    import gcsfs  # reads it; commands do without
    from gcp_storage_emulator.server import create_server

    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="texts")
    server.start()
    port = server._api._httpd.server_port  # a port that was free a moment ago may be taken by now
    monkeypatch.delenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    yield gcsfs.GCSFileSystem(token="anon", endpoint_url=f"http://127.0.0.1:{port}", use_listings_cache=False)
    server.stop()


@pytest.fixture
def web(tmp_path):
    """Start a web server of a folder; return its address."""
    pages = partial(Quiet, directory=tmp_path / "web")
    server = ThreadingHTTPServer(("127.0.0.1", 0), pages)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def files(store, folder):
    return {name.removeprefix(f"{folder}/"): store.cat_file(name) for name in store.find(folder)}


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("scripted")
def test_stores_and_the_web_give_and_take_what_a_folder_does_with_both_engines(
    as2d, s3, gs, web, sound, tmp_path
):
    s3.mkdir("archive")
    for name in ("a.wav", "below/b #1 ü%20.wav"):
        s3.put_file(str(sound(name)), f"archive/talks/{name}")
    s3.pipe_file("archive/talks/below/no sound.md", b"text")
    sound("web/c.wav")
    shutil.copytree(tmp_path / "below", tmp_path / "talks" / "below")
    shutil.copy(tmp_path / "a.wav", tmp_path / "talks")
    options = ("-f", "txt,json", "--json")
    assert as2d("transcribe", "talks", "web/c.wav", "-o", "local", *options).code == 0
    local = tmp_path / "local"
    expected = {
        path.relative_to(local).as_posix(): path.read_bytes() for path in local.rglob("*") if path.is_file()
    }
    assert set(expected) == {
        f"{stem}.{kind}" for stem in ("a", "below/b #1 ü%20", "c") for kind in ("txt", "json")
    }

    far = ("transcribe", "s3://archive/talks", f"{web}/c.wav?sig=x", "-o", "gs://texts/2026", *options)
    ended = as2d(*far, "--engine", "ray")
    assert ended.code == 0, ended.err
    assert ended.records()[0]["file"] == "s3://archive/talks/a.wav"
    assert "s3://archive/talks: ignored 1 file that is no audio" in ended.err
    assert files(gs, "texts/2026") == expected
    again = as2d(*far)  # the local engine takes up what the other did
    assert [one.get("skipped") for one in again.records()[:-1]] == [True] * 3, again.err
    s3.put_file(str(sound("other.wav")), "archive/talks/a.wav")
    changed = as2d(*far)
    skipped = {Path(one["file"]).name[0]: one.get("skipped") for one in changed.records()[:-1]}
    assert skipped == {"a": None, "b": True, "c": True}

    gs.put_file(str(tmp_path / "a.wav"), "texts/talks/a.wav")
    back = ("transcribe", "gs://texts/talks/*.wav", "-o", "s3://archive/texts", *options)
    for skipped in (None, True):
        ended = as2d(*back)
        assert ended.records()[0].get("skipped") is skipped, ended.err
    assert files(s3, "archive/texts") == {name: expected[name] for name in ("a.txt", "a.json")}


@pytest.mark.parametrize("store", ["s3", "gs"])
def test_a_bucket_that_is_not_there_is_said_before_any_work(as2d, request, scripted, sound, store):
    request.getfixturevalue(store)
    ended = as2d("transcribe", sound(), "-o", f"{store}://elsewhere/texts")
    assert ended.code == 2
    first, hint = ended.err.splitlines()
    assert first.startswith(f"as2d: error: {store}://elsewhere/texts: cannot be reached: not found: ")
    assert hint == "hint: -o needs a folder you may write to"


@pytest.mark.parametrize("store", ["s3", "gs"])
def test_a_store_that_does_not_answer_is_not_waited_for_for_long(monkeypatch, store):
    monkeypatch.setattr(remote_files, "_STORE_PATIENCE_S", 1.0)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        for name in ("AWS_ENDPOINT_URL", "STORAGE_EMULATOR_HOST"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{deaf.getsockname()[1]}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "key")
        (deaf_one,) = find_inputs([f"{store}://bucket/a.wav"]).found
    assert deaf_one.error.message == f"{store}://bucket/a.wav: cannot be reached: the server does not answer"
