"""Runs that are ended at random moments lose nothing that was finished, and leave nothing lying about."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

AS2D = Path(sys.executable).with_name("as2d")
SHARED_MEMORY = Path("/dev/shm")
FILES, KILLS = 40, 10


def start(cwd, folder):
    """Start the batch in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [AS2D, "transcribe", "talks", "-o", folder, "-f", "txt,json", "--quiet", "--json"],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_for_the_end_of(group):
    """Wait until no process of the group lives."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(f"processes of group {group} live on")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*") if not path.name.startswith(".")}


def identities(folder, names):
    """Return what changes when a file is written again, even if with the same content."""
    found = {name: (folder / name).stat() for name in names}
    return {name: (status.st_ino, status.st_mtime_ns) for name, status in found.items()}


def memory_left_behind(pids):
    """Return the shared memory that processes have made."""
    return [path.name for pid in pids for path in SHARED_MEMORY.glob(f"as2d-{pid}-*")]


def end(process, how):
    """End a run in one of three ways; return what it printed to stdout."""
    if how == "interrupt":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    elif how == "kill":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    printed, said = process.communicate(timeout=60)
    # a process that was just being started finds nobody to tell it what to do: Python itself complains
    orphaned = how == "kill" and b"pickle.load(from_parent)" in said
    assert orphaned or b"Traceback" not in said
    wait_for_the_end_of(process.pid)
    return printed


def finish(cwd, folder):
    """Let the batch run to its end; return what it wrote."""
    process = start(cwd, folder)
    assert process.communicate(timeout=200)[1] == b""
    assert process.returncode == 0
    return contents(cwd / folder)


def first_s(cwd):
    """Return how long a run takes until it has finished its first file."""
    began = time.monotonic()
    process = start(cwd, "timed")
    process.stdout.readline()
    taken_s = time.monotonic() - began
    end(process, "kill all")
    return taken_s


@pytest.fixture
def batch(scripted, sound, tmp_path, monkeypatch):
    """The folder of the batch, and what it gives when nobody disturbs it."""
    scripted({"words": 20, "encode_ms": 30.0}, {"words": 20})
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    for number in range(FILES):
        sound(f"talks/{number:02d}.wav", 1.0)
    expected = finish(tmp_path, "whole")
    assert len(expected) == 2 * FILES
    return tmp_path, expected


@pytest.mark.timeout(600)
def test_a_batch_that_is_ended_ten_times_ends_as_one_that_is_not(batch):
    folder, expected = batch
    out = folder / "out"
    draw, begins_s = random.Random(20), first_s(folder)
    seen, pids, codes, interrupted = {}, [], [], []
    while len(codes) < KILLS:
        process, how = start(folder, "out"), draw.choice(["kill", "kill all", "interrupt"])
        pids.append(process.pid)
        time.sleep(draw.uniform(0.3, 1.6) * begins_s)
        if process.poll() is not None:  # it was faster: give it work again
            process.communicate()
            for path in draw.sample(sorted(out.glob("*.txt")), 12):
                path.unlink()
                seen.pop(path.name, None)  # it may be newer than the last look
            continue
        printed = end(process, how)
        codes.append(process.returncode)
        now = contents(out) if out.is_dir() else {}
        assert all(content == expected[name] for name, content in now.items()), "a file is not whole"
        assert identities(out, seen) == seen, "a finished file was lost or written again"
        seen = identities(out, now)
        if process.returncode == 130 and printed:  # it may not have come to begin a run
            interrupted.append(json.loads(printed.splitlines()[-1])["report"]["interrupted"])
    assert interrupted
    assert all(interrupted)
    assert {-signal.SIGKILL, 130} <= set(codes)
    assert finish(folder, "out") == expected
    assert identities(out, seen) == seen
    assert [path for place in (out, folder / "cache") for path in place.rglob("*.part")] == []
    assert memory_left_behind(pids) == []


def test_a_second_interrupt_ends_the_run_at_once(scripted, sound, tmp_path):
    scripted({"step_ms": 50.0}, {"error_rate": 1.0})
    for number in range(20):
        sound(f"talks/{number:02d}.wav")
    process = start(tmp_path, "out")
    process.stdout.readline()
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.05)
    process.communicate(timeout=60)
    assert len(contents(tmp_path / "out")) < 20, "for half of all it would take 20 s more"
    assert process.returncode in {130, -signal.SIGINT}
    wait_for_the_end_of(process.pid)
