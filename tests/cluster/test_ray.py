"""The command with `--engine ray`: a cluster of its own, one of three nodes, and what may happen to them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

AS2D = Path(sys.executable).with_name("as2d")
HERE = Path(__file__).parent
POISON_PLUGIN = HERE.parent / "data" / "poison_plugin"
SPEECH = HERE.parent / "data" / "jfk.flac"
FILES = 60
RAY = ("--engine", "ray")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*") if not path.name.startswith(".")}


def wait_until(true, patience_s=120):
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.1)


def ray_processes(mark):
    """Return the processes whose command line or environment has this mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in told and int(process.name) != os.getpid():
            found.append((process / "cmdline").read_bytes().decode()[:200])
    return found


@pytest.fixture
def mark(monkeypatch):
    """Mark all processes that the test starts."""
    monkeypatch.setenv("AS2D_TEST_MARK", f"mark-{time.time_ns()}-{os.getpid()}")
    return os.environ["AS2D_TEST_MARK"]


def noise(path):
    """Write a file that the fragile target cannot bear."""
    speech, rate_hz = soundfile.read(SPEECH, dtype="float32")
    loud = np.random.default_rng(1).normal(0, 0.3, len(speech))
    soundfile.write(path, (speech + loud).clip(-1, 1), rate_hz)


@pytest.mark.timeout(300)
def test_a_cluster_of_its_own_gives_what_the_local_engine_gives_and_a_poison_file_fails_alone(
    as2d, scripted, sound, tmp_path, monkeypatch, mark
):
    monkeypatch.setenv("PYTHONPATH", str(POISON_PLUGIN), prepend=":")
    scripted(plugin="poison")
    for name in ("a", "b", "c"):
        sound(f"talks/{name}.wav", 2.0)
    sound("talks/long.wav", 1300)
    command = ("transcribe", "talks", "-f", "txt,json,srt", "--json", "--drafter", "none", "-o")
    local = as2d(*command, "local")
    assert local.code == 0
    noise(tmp_path / "talks" / "b2.wav")
    ended = as2d(*command, "far", *RAY)
    assert ended.code == 1
    *files, report = ended.records()
    assert [Path(one["file"]).stem for one in files] == ["a", "b", "b2", "c", "long"]
    failed = files.pop(2)
    assert "lost in it 3 times" in failed["error"]
    strip = ("stats", "outputs")
    assert [{key: one[key] for key in one if key not in strip} for one in files] == [
        {key: one[key] for key in one if key not in strip} for one in local.records()[:-1]
    ]
    assert contents(tmp_path / "far") == contents(tmp_path / "local")
    (node,) = report["report"]["nodes"]
    assert node["audio_s"] == pytest.approx(1306)
    assert report["report"]["audio_s"] == pytest.approx(1306)
    said = [
        line for line in ended.err.splitlines() if "an engine was lost" not in line and "b2.wav" not in line
    ]
    assert all(line.startswith("as2d: ") for line in said), ended.err
    wait_until(lambda: not ray_processes(mark), 20)


class Cluster:
    """Three nodes on this machine, until they are lost."""

    def __init__(self, environment):
        self._process = subprocess.Popen(
            [sys.executable, HERE / "three_nodes.py"],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = self._process.stdout.readline().strip()

    def lose_a_node(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self):
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def cluster(scripted_cache):
    found = Cluster({"AS2D_CACHE_DIR": str(scripted_cache)})
    yield found
    found.end()


@pytest.fixture
def talks(scripted, sound, tmp_path):
    """Sixty clips, and what the local engine makes of them."""
    scripted({"words": 20, "encode_ms": 200.0}, {"words": 20})
    for number in range(FILES):
        sound(f"talks/{number:02d}.wav", 1.0)
    return tmp_path / "talks"


def start(cluster, cwd, folder):
    return subprocess.Popen(
        [
            AS2D,
            "transcribe",
            "talks",
            "-o",
            folder,
            "-f",
            "txt,json",
            "--json",
            *RAY,
            "--address",
            cluster.address,
        ],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def identities(folder):
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("[0-9]*")}


@pytest.mark.timeout(300)
def test_a_killed_driver_and_then_a_killed_node_lose_nothing_and_double_nothing(
    as2d, cluster, talks, tmp_path
):
    command = ("transcribe", "talks", "-o", "local", "-f", "txt,json")
    assert as2d(*command, "--quiet").code == 0
    expected = contents(tmp_path / "local")
    assert len(expected) == 2 * FILES

    far = tmp_path / "far"
    killed = start(cluster, tmp_path, "far")
    wait_until(lambda: len(list(far.glob("*.json"))) >= FILES // 5)
    killed.kill()
    killed.communicate()
    before = identities(far)
    assert FILES // 5 <= len(before) < 2 * FILES

    again = start(cluster, tmp_path, "far")
    wait_until(lambda: len(list(far.glob("*.json"))) >= FILES // 2)
    cluster.lose_a_node()
    out, said = again.communicate(timeout=200)
    assert again.returncode == 0, said
    *files, report = [json.loads(line) for line in out.splitlines()]
    assert contents(far) == expected
    assert before.items() <= identities(far).items(), "a finished file was written again"
    assert len(files) == FILES
    report = report["report"]
    assert (report["done"] + report["skipped"], report["failed"]) == (FILES, 0)
    assert report["skipped"] >= FILES // 5 - 1
    assert len(report["nodes"]) >= 2
    assert "an engine was lost" in said
    assert "Traceback" not in said
