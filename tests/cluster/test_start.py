"""Connecting to a cluster, and how many engines its nodes are given."""

import signal
import subprocess
import sys

import pytest

from as2d_cli.cli.exit_codes import ExitCode, exit_code
from as2d_cli.cluster.messages import EngineStarted
from as2d_cli.cluster.nodes import MAX_DEATHS, nodes_of
from as2d_cli.cluster.pool import EnginePool
from as2d_cli.cluster.start import connect, summary_line
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.domain.errors import ModelError, PluginError, RequestError
from as2d_cli.domain.types import FeatureSpec, Request

GB = 10**9


def row(name, cpus=8, memory=16 * GB, alive=True):
    resources = {"memory": memory} | ({"CPU": float(cpus)} if cpus else {})
    return {"NodeID": name, "NodeManagerHostname": name, "Alive": alive, "Resources": resources}


def started(peak_bytes):
    spec = TargetSpec(FeatureSpec(), end_id=1, vocab_size=2, languages=("en",), max_prompt_tokens=1)
    return EngineStarted(Request(), spec, None, 1.0, peak_bytes, (), threads=1)


class Alone:
    """Stands in for Ray's module."""

    def is_initialized():
        return False

    def init(**options):
        pass

    def shutdown():
        pass


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PluginError, match="needs the package ray, which is not installed") as missing:
        connect(None).__enter__()
    assert missing.value.hint == "pip install 'as2d[ray]'"
    assert exit_code(missing.value) is ExitCode.UNAVAILABLE


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nobody.invalid:6379", "127.0.0.1:99999", "a..b:1"])
def test_a_cluster_that_does_not_answer_is_told_of_at_once(address):
    with pytest.raises(PluginError, match="cannot be reached: ") as unreachable:
        connect(address).__enter__()
    assert "HOST:PORT" in unreachable.value.hint


@pytest.mark.parametrize("address", ["head", "local", "ray://head:10001", ":6379", "head:x"])
def test_what_cannot_be_the_address_of_a_cluster_is_refused(address):
    with pytest.raises(RequestError, match="is no address of a Ray cluster"):
        connect(address).__enter__()


def test_a_handler_that_is_not_of_python_does_not_keep_a_cluster_from_being_used(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "getsignal", lambda number: None)  # as where C has set one
    monkeypatch.setitem(sys.modules, "ray", Alone)
    try:
        with connect(None) as ray:
            assert ray is Alone
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_run_whose_cluster_has_lost_its_head_ends_before_ray_ends_the_program(monkeypatch):
    class Headless:
        gcs_address = "127.0.0.1:1"

        def get_runtime_context(self):
            return self

    pool = EnginePool(Headless(), None)
    pool.start_engines()  # it may come back
    monkeypatch.setattr("as2d_cli.cluster.pool._HEAD_PATIENCE_S", 0.0)
    monkeypatch.setattr("as2d_cli.cluster.pool._REFRESH_S", 0.0)
    with pytest.raises(PluginError, match="the head of the Ray cluster is gone: "):
        pool.start_engines()


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("The actor died.\n\tclass_name: EngineActor\n", "The actor died."),
        (
            "The actor died\ntraceback: Traceback (most recent call last):\n ^^^\nImportError: x",
            "ImportError: x",
        ),
        ('ray::EngineActor.load()\n  File "a.py", line 1\nKeyError: 1', "KeyError: 1"),
        ("", "OSError"),
    ],
)
def test_of_an_error_of_ray_one_line_is_shown(message, line):
    assert summary_line(OSError(message)) == line


def test_the_local_engine_imports_neither_ray_nor_what_reaches_far_files():
    code = (
        "import sys, as2d_cli.batch.run, as2d_cli.ask.from_audio, as2d_cli.ask.from_transcript;"
        "import as2d_cli.cluster.tracker;"
        "print({'ray', 'fsspec', 's3fs'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_nodes_that_are_dead_or_have_no_processors_get_no_engine():
    assert [node.name for node in nodes_of([row("a"), row("b", cpus=0), row("c", alive=False)], None)] == [
        "a"
    ]


@pytest.mark.parametrize(
    ("cpus", "asked", "threads", "engines"), [(2, None, 2, 1), (9, None, 4, 2), (8, 1, 1, 8), (2, 4, 2, 1)]
)
def test_a_node_first_gets_one_engine_and_then_as_many_as_its_processors_allow(cpus, asked, threads, engines):
    (node,) = nodes_of([row("a", cpus)], asked)
    assert (node.threads, node.missing_engines) == (threads, 1)
    node.engines = 1
    assert node.missing_engines == 0
    node.engine_started(started(GB // 10))
    assert node.wanted_engines == engines


def test_a_node_gets_no_more_engines_than_its_memory_holds_but_one():
    (node,) = nodes_of([row("a", 16, memory=4 * GB)], 1)
    node.engine_started(started(GB))
    assert node.wanted_engines == 3
    node.engine_started(started(10 * GB))
    assert node.wanted_engines == 1


def test_a_node_that_loses_engine_after_engine_is_given_up_unless_they_achieve_something():
    (node,) = nodes_of([row("a")], None)
    for _ in range(MAX_DEATHS):
        node.engines = 1
        node.add_audio(30.0)
        node.engine_lost(ModelError("burnt"))
    assert node.error is None
    for _ in range(MAX_DEATHS - 1):
        node.engines = 1
        node.engine_lost(ModelError("burnt"))
    assert node.error is not None
    assert node.missing_engines == 0
