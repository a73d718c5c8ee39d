"""What is said of the machine, also on systems that tell less than Linux does."""

import os
import platform

import pytest

from as2d_cli.system import device


@pytest.mark.parametrize(
    ("ticks", "quiet"),
    [
        ([(1000, 500), (1060, 558)], True),
        ([(1000, 500), (1060, 520)], False),
        ([(1000, 500), (1000, 500)], False),  # the clock stood still: nothing is known
    ],
)
def test_a_machine_is_quiet_while_nearly_all_its_processors_idle(monkeypatch, ticks, quiet):
    left = iter(ticks)
    monkeypatch.setattr(device, "_ticks", lambda: next(left))
    assert device.is_quiet() is quiet


@pytest.mark.parametrize(("load", "quiet"), [(0.1, True), (1.9, False)])
def test_without_a_proc_file_system_the_load_tells(monkeypatch, tmp_path, load, quiet):
    monkeypatch.setattr(device, "Path", lambda path: tmp_path / path.lstrip("/"))
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 9.0, 9.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert device.is_quiet() is quiet
    assert device.is_quiet(after_work=True)


def test_without_a_proc_file_system_the_processor_and_its_cores_are_told_by_python(monkeypatch, tmp_path):
    monkeypatch.setattr(device, "Path", lambda path: tmp_path / path.lstrip("/"))
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert device.device().startswith("arm, 8 CPUs, ")


def test_a_processor_is_told_by_the_name_that_the_system_has_for_it(monkeypatch, tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("processor : 0\nmodel name : Fast One\nmodel name : Other\n")
    monkeypatch.setattr(device, "Path", lambda path: tmp_path / path.lstrip("/"))
    assert device.device().startswith("Fast One, ")
