"""An engine of a cluster, without Ray."""

from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from as2d_cli.audio import sources
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.pipeline import NOTHING_SAID, Pipeline
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.resume import digest_of
from as2d_cli.batch.session import Session
from as2d_cli.batch.work import Item
from as2d_cli.cluster import actor
from as2d_cli.cluster.messages import Broken, FoundLong, WindowPiece
from as2d_cli.cluster.splitter import read_long
from as2d_cli.domain.errors import ModelError, PluginError
from as2d_cli.domain.types import Request
from as2d_cli.engine.engine import WindowOutcome
from as2d_cli.models.registry import load_registry
from as2d_cli.system import remote_files


@pytest.fixture
def loaded(monkeypatch):
    """Make an actor whose engine runs windows so; return it and what is added to when all is given back."""
    given_back = []

    def make(run):
        @contextmanager
        def open_session(asked, display):
            engine = SimpleNamespace(run=run, target_spec=None, process_ids=(), is_drafting=False)
            pipeline = Pipeline(engine)
            yield Session(engine, pipeline, Request(), None, load_s=0.0, guard=None, compared=None)
            given_back.append(True)

        monkeypatch.setattr(actor, "open_session", open_session)
        engine = actor.EngineActor(BatchRequest((), load_registry().model("whisper-base")))
        engine.load(version("as2d"))
        return engine, given_back

    return make


def test_a_broken_engine_has_given_everything_back_when_it_says_so(loaded):
    def run(tasks, guard):
        raise ModelError("the target died too often")
        yield

    engine, given_back = loaded(run)
    sent = next(engine.windows(WindowPiece(0, (0,), None), []))
    assert isinstance(sent.body, Broken)
    assert given_back


def test_a_file_far_away_is_fetched_once_and_only_by_who_decodes_it(loaded, sound, monkeypatch):
    fetched = []
    copied = remote_files.copy
    monkeypatch.setattr(sources, "copy", lambda where, file: fetched.append(where) or copied(where, file))
    monkeypatch.setattr(actor, "_FAR_LONG_BYTES", 200_000)
    for name, seconds in (("short", 2.0), ("long", 10.0)):
        remote_files.put(f"memory://actor/{name}.wav", sound(seconds=seconds).read_bytes())
    items = [
        Item(number, Input(Path(f"memory://actor/{name}.wav")), True)
        for number, name in enumerate(("long", "short"))
    ]
    engine, _ = loaded(lambda tasks, guard: (WindowOutcome(task, NOTHING_SAID) for task in tasks))
    decoded, found = (sent.body for sent in engine.files(*items))
    assert isinstance(found, FoundLong)
    assert (decoded.number, found.number) == (1, 0)
    assert fetched == ["memory://actor/short.wav"]
    assert decoded.content.sha256 == digest_of(Path("memory://actor/short.wav"))
    fetched.clear()
    *_, end = read_long(items[0], False)
    assert fetched == ["memory://actor/long.wav"]
    assert end.content.sha256 == digest_of(Path("memory://actor/long.wav"))


def test_an_engine_of_another_version_loads_nothing(monkeypatch):
    monkeypatch.setattr(actor, "open_session", None)
    engine = actor.EngineActor(BatchRequest((), load_registry().model("whisper-base")))
    refused = engine.load("0.0.9")
    assert isinstance(refused, PluginError)
    assert refused.message == f"as2d {version('as2d')} is installed there, here 0.0.9"
