"""What control groups leave a process, from made-up trees of both versions."""

import pytest

from as2d_cli.system import cgroups, device


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Write the files of a system that are read instead of this one's."""
    monkeypatch.setattr(cgroups, "Path", lambda path: tmp_path / path.lstrip("/"))
    cgroups.cpu_quota.cache_clear()

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    yield write
    cgroups.cpu_quota.cache_clear()


V2 = {"proc/self/cgroup": "0::/app/worker\n"}
V1 = {"proc/self/cgroup": "4:memory:/docker/1a\n3:cpu,cpuacct:/docker/1a\n1:name=systemd:/\n0::/\n"}


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "garbage\n"}, None),
        (V2 | {"sys/fs/cgroup/app/worker/cpu.max": "max 100000\n"}, None),
        (V2 | {"sys/fs/cgroup/app/worker/cpu.max": "150000 100000\n"}, 1.5),
        (V2 | {"sys/fs/cgroup/app/worker/cpu.max": "?\n"}, None),
        # a group above is narrower
        (
            V2
            | {
                "sys/fs/cgroup/app/worker/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/app/cpu.max": "200000 100000\n",
            },
            2.0,
        ),
        # a container that sees its own group as the root, yet is told the host's path
        (V2 | {"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5),
        (
            V1
            | {
                "sys/fs/cgroup/cpu/docker/1a/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu/docker/1a/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            V1
            | {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_the_quota_is_the_least_of_all_groups(tree, files, quota):
    tree(files)
    assert cgroups.cpu_quota() == quota


@pytest.mark.parametrize(("quota", "cpus"), [("250000", 3), ("50000", 1), ("900000", 4), ("max", 4)])
def test_no_more_processors_are_used_than_a_quota_fills(tree, monkeypatch, quota, cpus):
    tree(V2 | {"sys/fs/cgroup/cpu.max": f"{quota} 100000\n"})
    monkeypatch.setattr(device, "_own_cpus", lambda: 4)
    assert device.usable_cpus() == device.usable_threads(None) == cpus


def test_a_quota_is_part_of_the_device_only_where_it_limits(tree, monkeypatch):
    tree(V2 | {"sys/fs/cgroup/cpu.max": "150000 100000\n"})
    monkeypatch.setattr(device, "_own_cpus", lambda: 1)
    assert ", 1 CPUs, " in device.device()
    monkeypatch.setattr(device, "_own_cpus", lambda: 8)
    assert ", 2 CPUs (a quota of 1.5), " in device.device()


@pytest.mark.parametrize(
    ("files", "left"),
    [
        (V2 | {"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "5\n"}, None),
        (
            V2
            | {
                "sys/fs/cgroup/memory.max": "1000\n",
                "sys/fs/cgroup/memory.current": "700\n",
                "sys/fs/cgroup/memory.stat": "anon 500\ninactive_file 100\n",
            },
            400,
        ),
        (
            V1
            | {
                "sys/fs/cgroup/memory/docker/1a/memory.limit_in_bytes": "1000\n",
                "sys/fs/cgroup/memory/docker/1a/memory.usage_in_bytes": "1200\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "9\n",
            },
            0,
        ),
    ],
)
def test_the_memory_left_counts_what_the_page_cache_would_give_back(tree, files, left):
    tree(files)
    assert cgroups.memory_left_bytes() == left
