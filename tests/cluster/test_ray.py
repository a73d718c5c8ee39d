"""The command with `--engine ray`: a cluster of its own, one of three nodes, and what may happen to them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

AS2D = Path(sys.executable).with_name("as2d")
HERE = Path(__file__).parent
DATA = HERE.parent / "data"
POISON_PLUGIN = DATA / "poison_plugin"
SPEECH = DATA / "jfk.flac"
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
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            process_data = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in process_data and int(process.name) != os.getpid():
            commands.append((process / "cmdline").read_bytes().decode()[:200])
    return commands


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
    command = (
        "transcribe",
        "talks",
        "-f",
        "txt,json,srt",
        "--json",
        "--drafter",
        "none",
        "--no-rescue",
        "-o",
    )
    local = as2d(*command, "local")
    assert local.code == 0
    assert len(local.records()[-2]["warnings"]) > 40
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
    wait_until(lambda: not ray_processes(mark), 60)


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
        self.options = (*RAY, "--address", self._process.stdout.readline().strip())

    def lose_a_node(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self):
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def cluster(scripted_cache):
    three_nodes = Cluster({"AS2D_CACHE_DIR": str(scripted_cache)})
    yield three_nodes
    three_nodes.end()


@pytest.fixture
def talks(scripted, sound, tmp_path):
    """Sixty clips, and what the local engine makes of them."""
    scripted({"words": 20, "encode_ms": 200.0}, {"words": 20})
    for number in range(FILES):
        sound(f"talks/{number:02d}.wav", 1.0)
    return tmp_path / "talks"


def start(cwd, folder, *options):
    """Start a run on Ray in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [AS2D, "transcribe", "talks", "-o", folder, "-f", "txt,json", "--json", *options],
        cwd=cwd,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def memory_left_behind():
    """Return the shared memory of processes that are gone."""
    names = [path.name for path in Path("/dev/shm").glob("as2d-*")]
    return [name for name in names if not Path(f"/proc/{name.split('-')[1]}").exists()]


def test_sigterm_while_engines_load_ends_the_run_and_its_cluster(scripted, sound, tmp_path, mark):
    scripted({"encode_ms": 3_600_000.0})  # nor is the file done, should the engine be ready already
    sound("talks/a.wav")
    run = start(tmp_path, "out", *RAY)
    wait_until(lambda: any("ray::EngineActor" in command for command in ray_processes(mark)))
    run.terminate()
    out, said = run.communicate(timeout=60)
    assert run.returncode == 143, said
    assert said == "as2d: interrupted: 0 of 1 file done\n"
    assert json.loads(out)["report"]["interrupted"] is True
    wait_until(lambda: not ray_processes(mark), 60)
    wait_until(lambda: memory_left_behind() == [], 60)  # another run's may be there for a moment


@pytest.mark.timeout(200)
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_takes_it_up(
    as2d, cluster, scripted, sound, tmp_path
):
    scripted({"words": 20, "encode_ms": 400.0}, {"words": 20})
    for number in range(12):
        sound(f"talks/{number:02d}.wav", 1.0)
    assert as2d("transcribe", "talks", "-o", "local", "-f", "txt,json").code == 0
    expected = contents(tmp_path / "local")
    far = tmp_path / "far"
    run = start(tmp_path, "far", *cluster.options)
    wait_until(lambda: len(list(far.glob("*.json"))) >= 2)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    out, said = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert said.startswith("as2d: interrupted: ")
    assert "Traceback" not in said
    assert contents(far).items() < expected.items()
    assert list(far.glob(".*")) == []
    before, done = identities(far), json.loads(out.splitlines()[-1])["report"]["done"]
    wait_until(lambda: memory_left_behind() == [], 60)  # another run's may be there for a moment

    again = start(tmp_path, "far", *cluster.options, "--compare")
    out, said = again.communicate(timeout=100)
    assert again.returncode == 0, said
    assert contents(far) == expected
    assert before.items() <= identities(far).items(), "a finished file was written again"
    report = json.loads(out.splitlines()[-1])["report"]
    comparison = report["comparison"]
    assert comparison["windows"] == comparison["identical"] == report["done"] == 12 - done
    assert comparison["speedup"] > 0
    assert sum(node["audio_s"] > 0 for node in report["nodes"]) > 1, "several engines were at work"


def records_of(ended):
    """Return the records that a command printed, but for figures that vary."""
    return [
        {key: record[key] for key in record if key not in {"stats", "report"}} for record in ended.records()
    ]


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "command",
    [
        ("ask", "talks", "-q", "What?", "-q", "Who?", "--reader", "none", "--compare"),
        ("ask", "talks", "-q", "What?", "--reader", "reader", "--reader-drafter", "none"),
        ("translate", "talks", "-l", "german", "-f", "txt,srt,json"),
    ],
    ids=["by ear", "by a reader", "translate"],
)
def test_other_commands_give_what_the_local_engine_gives(as2d, cluster, scripted, sound, tmp_path, command):
    scripted({"words": 20}, {"words": 20})
    with (tmp_path / "models.toml").open("a", encoding="utf-8") as registry:
        registry.write(
            '\n[models.reader]\nplugin = "scripted"\nrole = "any"\nsource = { kind = "none" }\n'
            "options.seed = 2\noptions.words = 9\noptions.listens = false\n"
        )
    sound("talks/a.wav", 40.0)
    sound("talks/b.wav", 2.0)
    (tmp_path / "talks" / "bad.wav").write_bytes(b"no sound")
    local = as2d(*command, "--json")
    written = contents(tmp_path / "talks")
    for name in written:
        if not name.endswith(".wav"):
            (tmp_path / "talks" / name).unlink()
    far = as2d(*command, "--json", *cluster.options)
    assert (far.code, records_of(far)) == (local.code, records_of(local)), far.err
    assert contents(tmp_path / "talks") == written
    assert len(records_of(far)) > 3
    reports = [ended.records()[-1]["report"] for ended in (local, far)]
    if "--compare" in command:
        both = [report["answering"]["comparison"] for report in reports]
        assert [one["identical"] for one in both] == [6, 6]


def test_a_real_model_writes_on_ray_what_it_writes_without(as2d, tmp_path):
    clips = [DATA / name for name in ("jfk.flac", "LJ001-0002.flac", "printing.opus")]
    command = ("transcribe", *clips, "-m", "whisper-tiny.en", "--drafter", "lookup", "--threads", "1")
    command += ("-f", "txt,json,srt", "--word-timestamps", "-o")
    for folder, options in (("local", ()), ("far", RAY)):
        ended = as2d(*command, folder, *options)
        assert ended.code == 0, ended.err
    written = contents(tmp_path / "far")
    assert len(written) == 9
    assert written == contents(tmp_path / "local")
    assert b"ask not what your country can do for you" in written["jfk.txt"]


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
    killed = start(tmp_path, "far", *cluster.options)
    wait_until(lambda: len(list(far.glob("*.json"))) >= FILES // 5)
    killed.kill()
    killed.communicate()
    before = identities(far)
    assert FILES // 5 <= len(before) < 2 * FILES

    again = start(tmp_path, "far", *cluster.options)
    done = len(list(far.glob("*.json")))
    wait_until(lambda: len(list(far.glob("*.json"))) >= done + FILES // 6)
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
