"""An actor and its engine, without Ray."""

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
from as2d_cli.cluster.messages import EngineFailed, LongFileFound, WindowPiece
from as2d_cli.cluster.splitter import split_file
from as2d_cli.domain.errors import ModelError, PluginError
from as2d_cli.domain.types import Request
from as2d_cli.engine.run.tasks import WindowOutcome
from as2d_cli.models.registry import load_registry
from as2d_cli.system import remote_files


@pytest.fixture
def loaded(monkeypatch):
    """Make an actor whose engine runs windows so; return it and a list that grows when its engine closes."""
    closed = []

    def make(run):
        @contextmanager
        def open_session(read_request, display):
            engine = SimpleNamespace(run=run, target_spec=None, process_ids=(), is_drafting=False)
            yield Session(
                engine,
                Pipeline(engine),
                Request(),
                None,
                None,
                load_s=0.0,
                guard=None,
                compared=None,
                engines=1,
                threads=1,
            )
            closed.append(True)

        monkeypatch.setattr(actor, "open_session", open_session)
        engine_actor = actor.EngineActor(BatchRequest((), load_registry().model("whisper-base")))
        engine_actor.load(version("as2d"))
        return engine_actor, closed

    return make


def test_a_failed_engine_is_closed_before_its_failure_is_sent(loaded):
    def run(tasks, guard):
        raise ModelError("the target died too often")
        yield

    engine_actor, closed = loaded(run)
    message = next(engine_actor.windows(WindowPiece(0, (0,), None), []))
    assert isinstance(message.event, EngineFailed)
    assert closed


def test_a_file_far_away_is_fetched_once_and_only_by_who_decodes_it(loaded, sound, monkeypatch):
    fetched = []
    copied = remote_files.copy
    monkeypatch.setattr(sources, "copy", lambda where, file: fetched.append(where) or copied(where, file))
    monkeypatch.setattr(actor, "_REMOTE_LONG_BYTES", 200_000)
    for name, seconds in (("short", 2.0), ("long", 10.0)):
        remote_files.put(f"memory://actor/{name}.wav", sound(seconds=seconds).read_bytes())
    items = [
        Item(number, Input(Path(f"memory://actor/{name}.wav")), True)
        for number, name in enumerate(("long", "short"))
    ]
    engine_actor, _ = loaded(lambda tasks, guard: (WindowOutcome(task, NOTHING_SAID) for task in tasks))
    decoded, found = (message.event for message in engine_actor.files(*items))
    assert isinstance(found, LongFileFound)
    assert (decoded.number, found.number) == (1, 0)
    assert fetched == ["memory://actor/short.wav"]
    assert decoded.content.sha256 == digest_of(Path("memory://actor/short.wav"))
    fetched.clear()
    *_, end = split_file(items[0], False)
    assert fetched == ["memory://actor/long.wav"]
    assert end.content.sha256 == digest_of(Path("memory://actor/long.wav"))


def test_no_two_files_share_a_group_whether_they_come_whole_or_as_windows(loaded, sound):
    groups = []  # the engine remembers a language for each

    def run(tasks, guard):
        for task in tasks:
            groups.append(task.group)
            yield WindowOutcome(task, NOTHING_SAID)

    engine_actor, _ = loaded(run)
    items = [Item(number, Input(sound(f"{number}.wav", 2.0)), False) for number in range(2)]
    *_, chunk, _ = split_file(Item(2, Input(sound("2.wav", 2.0)), False), False)
    piece = WindowPiece(2, (0,), None)
    for messages in (
        engine_actor.windows(piece, chunk),
        engine_actor.files(*items),
        engine_actor.windows(piece, chunk),
        engine_actor.files(items[0]),
    ):
        list(messages)
    assert len(set(groups)) == len(groups) == 5


def test_an_engine_of_another_version_loads_nothing(monkeypatch):
    monkeypatch.setattr(actor, "open_session", None)
    engine_actor = actor.EngineActor(BatchRequest((), load_registry().model("whisper-base")))
    refused = engine_actor.load("0.0.9")
    assert isinstance(refused, PluginError)
    assert refused.message == f"as2d {version('as2d')} is installed there, here 0.0.9"
