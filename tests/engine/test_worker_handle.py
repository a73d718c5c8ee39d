"""A worker process seen from the main one."""

from multiprocessing.connection import Connection

from as2d_cli.engine.worker_handle import WorkerHandle


def test_a_process_that_sends_what_is_no_message_is_lost():
    worker = WorkerHandle("odd", Connection.send_bytes, b"no message")
    assert worker.receive(20.0) is None
    assert not worker.process.is_alive()
