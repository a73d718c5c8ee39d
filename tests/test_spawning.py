import os
import signal
import threading
import time

import pytest

from as2d_cli.spawning import uninterrupted


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


def test_no_interruption_no_exception():
    with uninterrupted():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
