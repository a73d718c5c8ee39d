"""What the target's and the drafter's process share: how a worker serves jobs, and how it ends.

Each worker serves one model. It answers every job, sends errors as data, and ends when the main process does
(its pipe closes).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from as2d_cli.domain.errors import As2dError, DecodeError, ModelError, described
from as2d_cli.engine.measure import DraftCosts, TargetCosts
from as2d_cli.engine.messages import (
    LOADING,
    Failed,
    ForgetJobs,
    Job,
    Measure,
    Measured,
)
from as2d_cli.models import loader
from as2d_cli.system.spawning import follow_parent


@contextmanager
def plugin_errors(model: str) -> Iterator[None]:
    """Turn whatever a model raises, even an exit of its process, into `DecodeError`: it fails a window."""
    try:
        yield
    except As2dError:
        raise
    except BaseException as error:
        loader.show_where(error)
        raise DecodeError(f"the {model} failed: {described(error)}") from error


@contextmanager
def serving(pipe: Connection) -> Iterator[None]:
    """Set up a worker process and turn the end of the main process into a quiet end of this one."""
    follow_parent()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):  # workers never read stdin, and native code must not write results
        os.dup2(null, descriptor)
    os.close(null)
    try:
        yield
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except As2dError as error:
        _give_up(pipe, error)
    except BaseException as error:  # whatever a plugin may raise: one line from the main process
        if os.environ.get("AS2D_DEBUG"):
            raise
        loader.show_where(error)
        _give_up(pipe, ModelError(f"a model failed: {described(error)}"))
        raise SystemExit(1) from error


def _give_up(pipe: Connection, error: As2dError) -> None:
    with suppress(OSError):  # the main process may be gone, or a plugin have closed the pipe
        pipe.send(Failed(LOADING, error))


def jobs(pipe: Connection, measure: Callable[[Measure], TargetCosts | DraftCosts]) -> Iterator[Job]:
    """Yield the jobs that come in, if they are still wanted; answer requests to measure in between."""
    received: deque[Job | Measure | ForgetJobs] = deque()
    while True:
        if not received:
            received.append(pipe.recv())
        while isinstance(received[-1], Job) and pipe.poll():
            received.append(pipe.recv())
        if isinstance(received[-1], ForgetJobs):
            received.clear()
            continue
        message = received.popleft()
        assert not isinstance(message, ForgetJobs)  # it was the last one
        if isinstance(message, Measure):
            pipe.send(Measured(measure(message)))
            if message.until_told:
                pipe.recv()
        else:
            yield message
