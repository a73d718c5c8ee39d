"""Inputs and outputs in an object store, with both engines."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def s3():
    """A store that speaks S3; give what commands need to find it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    server.stop()


@pytest.mark.timeout(300)
def test_inputs_and_outputs_of_an_object_store(as2d, s3, scripted, sound, tmp_path):
    import s3fs

    scripted({"words": 20}, {"words": 20})
    store = s3fs.S3FileSystem(
        key="key", secret="secret", endpoint_url=s3["AWS_ENDPOINT_URL"], use_listings_cache=False
    )
    store.mkdir("archive")
    for name in ("a.wav", "below/b.wav", "below/no sound.md"):
        path = sound(name) if name.endswith(".wav") else tmp_path / name
        if not path.exists():
            path.write_text("text")
        store.put_file(str(path), f"archive/talks/{name}")
    shutil.copytree(tmp_path / "below", tmp_path / "talks" / "below")
    shutil.copy(tmp_path / "a.wav", tmp_path / "talks" / "a.wav")
    assert as2d("transcribe", "talks", "-o", "local", "-f", "txt,json").code == 0
    command = ("transcribe", "s3://archive/talks", "-o", "s3://archive/texts", "-f", "txt,json", "--json")
    ended = as2d(*command, "--engine", "ray", **s3)
    assert ended.code == 0, ended.err
    assert ended.records()[0]["file"] == "s3://archive/talks/a.wav"
    assert "s3://archive/talks: ignored 1 file that is no audio" in ended.err
    written = {
        name.removeprefix("archive/texts/"): store.cat_file(name) for name in store.find("archive/texts")
    }
    local = tmp_path / "local"
    assert written == {
        path.relative_to(local).as_posix(): path.read_bytes() for path in local.rglob("*") if path.is_file()
    }
    assert set(written) == {"a.txt", "a.json", "below/b.txt", "below/b.json"}
    again = as2d(*command, **s3)  # the local engine takes up what the other did
    assert [one.get("skipped") for one in again.records()[:-1]] == [True, True], again.err
    store.put_file(str(sound("other.wav")), "archive/talks/a.wav")
    changed = as2d(*command, **s3)
    skipped = {Path(one["file"]).name: one.get("skipped") for one in changed.records()[:-1]}
    assert skipped == {"a.wav": None, "b.wav": True}
