"""What a drafter's process is asked for, and what becomes of one that breaks the protocol."""

from multiprocessing.connection import Connection

import pytest

from as2d_cli.decoding.protocols import DrafterSpec
from as2d_cli.domain.types import FeatureSpec, Request
from as2d_cli.engine.processes import MAX_WAITING, DrafterProcess, WorkerHandle


class Listener:
    """A drafter's process as far as deciding what to ask of it goes."""

    def __init__(self, languages, tasks):
        self.is_attached, self._waiting = True, 0
        self.spec = DrafterSpec(FeatureSpec(), languages, tasks)


@pytest.mark.parametrize(
    ("languages", "tasks", "request_", "taken"),
    [
        (None, None, Request("translate"), True),
        (("en",), ("transcribe",), Request("translate"), False),
        (("en",), ("transcribe",), Request("translate", "de"), False),
        (("en",), ("transcribe",), Request("translate").in_language("en"), True),
        (("en",), ("transcribe",), Request("transcribe"), True),
        (("en",), ("transcribe",), Request("transcribe", "de"), False),
        (("de", "en"), ("transcribe", "translate"), Request("translate", "de"), True),
        (("de", "en"), ("transcribe", "translate"), Request("translate", "en", to="de"), False),
        (("de", "en"), ("transcribe",), Request("translate", to="de").in_language("de"), True),
    ],
)
def test_a_drafter_is_asked_only_for_what_it_can_do(languages, tasks, request_, taken):
    assert DrafterProcess.takes(Listener(languages, tasks), request_) is taken


def test_a_drafter_that_does_not_answer_is_asked_for_no_more_than_its_pipe_holds():
    listener = Listener(None, None)
    listener._waiting = MAX_WAITING - 1
    assert DrafterProcess.takes(listener, Request())
    listener._waiting += 1
    assert not DrafterProcess.takes(listener, Request())


def test_a_drafter_that_has_not_begun_is_not_asked():
    listener = Listener(None, None)
    listener.is_attached = False
    assert not DrafterProcess.takes(listener, Request())


def test_a_process_that_sends_what_is_no_message_is_lost():
    worker = WorkerHandle("odd", Connection.send_bytes, b"no message")
    assert worker.receive(20.0) is None
    assert not worker.process.is_alive()
