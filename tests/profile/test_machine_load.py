"""What others do with the processors, from made-up accounts and from this system's."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from as2d_cli.profile import machine_load
from as2d_cli.profile.machine_load import Load, LoadWatch


@pytest.fixture
def accounts(tmp_path, monkeypatch):
    """Write accounts of processors (user, idle and steal) and of processes (parent, ticks)."""
    monkeypatch.setattr(machine_load, "Path", lambda path: tmp_path / path.lstrip("/"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setattr(machine_load, "usable_cpus", lambda: 2)

    def write(processors, processes):
        folder = tmp_path / "proc"
        folder.mkdir(exist_ok=True)
        rows = [
            f"cpu{number} {user} 0 0 {idle} 0 0 0 {steal} 0 0"
            for number, (user, idle, steal) in enumerate(processors)
        ]
        (folder / "stat").write_text("\n".join(["cpu 9 9 9 9 9 9 9 9 9 9", *rows, "intr 5"]))
        for number, (parent, ticks) in processes.items():
            (folder / str(number)).mkdir(exist_ok=True)
            zeros = " ".join("0" * 9)
            (folder / str(number) / "stat").write_text(f"{number} (a) b) S {parent} {zeros} {ticks} 0 0 0 20")

    return write


def test_others_are_all_but_our_processes_and_what_they_have_started(accounts):
    accounts([(0, 0, 0), (0, 0, 0), (0, 0, 0)], {10: (1, 0), 11: (10, 0), 12: (1, 0)})
    watch = LoadWatch([10])
    accounts([(900, 100, 0), (500, 500, 0), (1000, 0, 0)], {10: (1, 300), 11: (10, 495), 12: (1, 600)})
    assert watch.load() == Load(pytest.approx(0.6), present=2, usable=2)


def test_the_hypervisor_is_one_of_the_others(accounts):
    accounts([(0, 0, 0), (0, 0, 0)], {})
    watch = LoadWatch([])
    accounts([(0, 500, 500), (5, 995, 0)], {})
    assert watch.load().others == pytest.approx(0.5)


def test_accounts_that_differ_by_a_few_ticks_are_no_load(accounts):
    accounts([(0, 0, 0), (0, 0, 0)], {10: (1, 0)})
    watch = LoadWatch([10])
    accounts([(4, 6, 0), (10, 0, 0)], {10: (1, 9)})
    assert watch.load().share == 0


def test_a_clock_that_stood_still_tells_nothing(accounts):
    accounts([(5, 5, 0), (5, 5, 0)], {})
    assert LoadWatch([]).load() is None


def test_what_a_quota_leaves_to_others_is_not_taken_from_us():
    assert Load(others=5.0, present=8, usable=2).share == 0
    assert Load(others=6.5, present=8, usable=2).share == pytest.approx(0.25)
    assert Load(others=1.0, present=2, usable=2).share == pytest.approx(0.5)


@pytest.mark.parametrize(("busy", "quiet"), [(2, True), (120, False)])
def test_a_machine_is_quiet_while_nearly_all_its_processors_idle(accounts, monkeypatch, busy, quiet):
    accounts([(0, 0, 0), (0, 0, 0)], {})
    now = [(busy, 200 - busy, 0), (0, 200, 0)]
    monkeypatch.setattr(machine_load.time, "sleep", lambda _: accounts(now, {}))
    assert machine_load.is_quiet() is quiet


@pytest.mark.parametrize(("average", "quiet"), [(0.1, True), (1.9, False)])
def test_without_a_proc_file_system_the_load_average_tells(monkeypatch, tmp_path, average, quiet):
    monkeypatch.setattr(machine_load, "Path", lambda path: tmp_path / path.lstrip("/"))
    monkeypatch.setattr(os, "getloadavg", lambda: (average, 9.0, 9.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert LoadWatch([os.getpid()]).load() is None
    assert machine_load.is_quiet() is quiet


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="this system does not tell")
def test_a_busy_process_is_one_of_the_others_unless_it_is_ours():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        stranger, own = LoadWatch([]), LoadWatch([process.pid])
        time.sleep(1.0)
        assert stranger.load().others > own.load().others + 0.1
    finally:
        process.kill()
        process.wait()
