"""What is said of the machine, also on systems that tell less than Linux does."""

import os
import platform

import pytest

from as2d_cli.system import device


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


@pytest.mark.parametrize(
    ("group", "free"), [(None, 2048 * 1024), (1_000_000, 1_000_000), (1 << 40, 2048 * 1024)]
)
def test_free_memory_is_what_the_system_and_the_group_both_leave(monkeypatch, tmp_path, group, free):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 2048 kB\n")
    monkeypatch.setattr(device, "Path", lambda path: tmp_path / path.lstrip("/"))
    monkeypatch.setattr(device, "memory_left_bytes", lambda: group)
    assert device.free_memory_bytes() == free


def test_free_memory_that_no_file_tells_is_not_known(monkeypatch, tmp_path):
    monkeypatch.setattr(device, "Path", lambda path: tmp_path / path.lstrip("/"))
    monkeypatch.setattr(device, "memory_left_bytes", lambda: None)
    assert device.free_memory_bytes() is None
