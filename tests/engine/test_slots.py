"""The shared memory between the processes: what it is called, and that none is left behind for good."""

import os
import resource
import subprocess
import sys
from contextlib import closing
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import FeatureSpec
from as2d_cli.engine.slots import SlotLayout, Slots

SPEC = FeatureSpec(80, 100)


def test_features_come_out_as_they_went_in_and_slots_do_not_overlap():
    layout = SlotLayout(2, SPEC, FeatureSpec(128, 100))
    with closing(Slots(layout)) as ours, closing(Slots(layout, ours.name)) as theirs:
        for slot in range(2):
            for number, spec in enumerate(layout.specs):
                ours.put(slot, spec, np.full(spec.shape, 10 * slot + number, np.float32))
        for slot in range(2):
            for number, spec in enumerate(layout.specs):
                assert (theirs.take(slot, spec) == 10 * slot + number).all()
        ours.unlink()


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="shared memory is not seen as files here")
def test_memory_of_a_run_that_was_killed_with_all_its_processes_is_removed_by_the_next():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left, running = (Path(f"/dev/shm/as2d-{process}-00c0ffee") for process in (gone.pid, os.getpid()))
    for path in (left, running):
        path.write_bytes(b"0")
    with closing(Slots(SlotLayout(1, SPEC, None))) as slots:
        assert slots.name.startswith(f"as2d-{os.getpid()}-")
        slots.unlink()
    assert not left.exists()
    assert running.exists()
    running.unlink()
    with pytest.raises(FileNotFoundError):
        SharedMemory(slots.name)


def test_a_drafter_that_writes_over_all_its_memory_changes_nothing_that_the_target_hears():
    layout = SlotLayout(2, SPEC, SPEC)
    with closing(Slots(layout)) as ours, closing(Slots(layout, ours.name, of_drafter=True)) as theirs:
        for slot in range(2):
            ours.put(slot, SPEC, np.full(SPEC.shape, slot, np.float32))
            assert (theirs.take(slot, SPEC) == slot).all()
        for buffer in theirs._buffers:
            buffer[:] = b"\xff" * len(buffer)
        assert all((ours.take(slot, SPEC) == slot).all() for slot in range(2))
        ours.unlink()


def test_a_limit_of_files_is_an_error_in_one_line(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    with pytest.raises(ModelError, match=r"no shared memory.*File too large"):
        Slots(SlotLayout(1, SPEC, None))


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="shared memory is not seen as files here")
def test_memory_that_the_system_does_not_have_is_an_error_and_not_a_crash_later(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ModelError, match=r"no shared memory.*No space left"):
        Slots(SlotLayout(1, SPEC, None))
    assert list(Path("/dev/shm").glob(f"as2d-{os.getpid()}-*")) == []
