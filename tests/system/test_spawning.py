import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from as2d_cli.system.spawning import is_alive, start, uninterrupted


@pytest.fixture
def another_thread():
    """A thread that does nothing, and has no signal blocked."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield
    done.set()
    thread.join()


def test_an_interruption_waits_for_the_end_of_the_block_whichever_thread_gets_it(another_thread):
    steps = []

    def interrupted():
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)  # for the other thread to run the signal's handler
            steps.append("done")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["done"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_request_to_end_waits_like_a_ctrl_c(another_thread):
    got = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)
            assert got == []
        assert got == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


SCRIPT = """
import multiprocessing, time
from as2d_cli.system.spawning import follow_parent, start

if __name__ == "__main__":
    from orphan import wait_for_ever
    start(multiprocessing.get_context("spawn").Process(target=wait_for_ever))
    time.sleep(60)
"""
ORPHAN = """
import os, sys, time
from as2d_cli.system.spawning import follow_parent

def wait_for_ever():
    follow_parent()
    print(os.getpid(), flush=True)
    while True:
        time.sleep(0.01)
"""


def test_a_process_that_never_looks_up_ends_when_the_main_one_is_killed(tmp_path):
    (tmp_path / "main.py").write_text(SCRIPT)
    (tmp_path / "orphan.py").write_text(ORPHAN)
    with subprocess.Popen([sys.executable, tmp_path / "main.py"], stdout=subprocess.PIPE) as main:
        orphan = int(main.stdout.readline())
        assert is_alive(orphan)
        main.kill()
        end = time.monotonic() + 10
        while is_alive(orphan):
            assert time.monotonic() < end
            time.sleep(0.02)


def test_no_interruption_no_exception():
    with uninterrupted():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_two_threads_that_start_processes_at_once_leave_the_main_module_in_its_place():
    class Slow:
        def start(self):
            time.sleep(0.1)

    main = sys.modules["__main__"]
    threads = [threading.Thread(target=start, args=(Slow(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
        time.sleep(0.03)
    for thread in threads:
        thread.join()
    assert sys.modules["__main__"] is main
