"""An engine of a cluster, without Ray."""

from contextlib import contextmanager
from types import SimpleNamespace

from as2d_cli.cluster import station
from as2d_cli.cluster.pieces import Broken, WindowPiece
from as2d_cli.errors import ModelError
from as2d_cli.registry import load_registry
from as2d_cli.requests import BatchRequest
from as2d_cli.types import Request


def test_a_broken_engine_has_given_everything_back_when_it_says_so(monkeypatch):
    given_back = []

    def run(tasks, guard):
        raise ModelError("the target died too often")
        yield

    @contextmanager
    def ready(asked, display):
        engine = SimpleNamespace(run=run, target_spec=None, process_ids=())
        yield SimpleNamespace(
            guard=lambda: None,
            engine=engine,
            request=Request(),
            budget=None,
            load_s=0.0,
            is_drafter_lost=False,
        )
        given_back.append(True)

    monkeypatch.setattr(station, "ready", ready)
    engine = station.Station(BatchRequest((), load_registry().model("whisper-base")))
    engine.load()
    sent = next(engine.windows(WindowPiece(0, (0,), None), []))
    assert isinstance(sent.body, Broken)
    assert given_back
