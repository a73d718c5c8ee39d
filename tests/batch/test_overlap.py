"""Work side by side, in order; outputs in a store that takes its time."""

import threading
import time
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from as2d_cli.batch.inputs import find_inputs
from as2d_cli.batch.local import start_local
from as2d_cli.batch.overlap import overlapped
from as2d_cli.batch.request import BatchRequest, ClusterChoice
from as2d_cli.batch.run import BatchRun
from as2d_cli.models.registry import load_registry
from as2d_cli.system.addresses import address

FILES = 8


def test_results_come_in_order_and_are_kept_first_whoever_is_done_first():
    gate, kept = threading.Event(), []

    def do(piece):
        if piece == 0:
            assert gate.wait(20)
        else:
            gate.set()
        return piece

    for result in overlapped([0, 1, None, 2], do, kept.append, 2):
        assert kept[-1] == result
    assert kept == [0, 1, 2]


def test_one_at_a_time_is_over_before_the_next_piece_is_asked_for():
    said = []

    def pieces():
        for piece in range(3):
            said.append(f"ask {piece}")
            yield piece

    list(overlapped(pieces(), lambda piece: said.append(f"do {piece}"), lambda _: None, 1))
    assert said == ["ask 0", "do 0", "ask 1", "do 1", "ask 2", "do 2"]


def test_in_a_pause_what_is_finished_comes_out_and_nothing_is_waited_for():
    gate, done, kept = threading.Event(), threading.Event(), []

    def pieces():
        yield 0
        assert done.wait(20)
        while kept != [0]:
            yield None
        yield 1
        yield None
        gate.set()

    def do(piece):
        if piece == 1:
            assert gate.wait(20)
        done.set()
        return piece

    assert list(overlapped(pieces(), do, kept.append, 4)) == [0, 1]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, GeneratorExit])
def test_what_was_begun_is_ended_and_kept_also_when_the_run_is_stopped(stop):
    kept, begun = [], threading.Barrier(4)

    def do(piece):
        begun.wait(20)
        time.sleep(0.02 * piece)
        return piece

    results = overlapped(range(4), do, kept.append, 4)
    next(results)
    with pytest.raises(stop):
        results.throw(stop)
    assert kept == [0, 1, 2, 3]


def test_what_goes_wrong_in_a_piece_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(overlapped([1, 0], lambda piece: 1 / piece, lambda _: None, 2))


class Slow(MemoryFileSystem):
    """A store in memory that takes nothing until it is to take two at a time, and can be full."""

    protocol = "slow"
    store: dict = {}  # noqa: RUF012 - as fsspec has it
    pseudo_dirs = [""]  # noqa: RUF012
    taking: set = set()  # noqa: RUF012
    together = threading.Event()

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("slow://").strip("/")

    def pipe_file(self, path, value, **options):
        if path.endswith("3.txt"):
            raise OSError("full")
        self.taking.add(path)
        if len(self.taking) > 1:
            self.together.set()
        self.together.wait(20)
        self.taking.remove(path)
        super().pipe_file(path, value, **options)


def test_outputs_of_a_cluster_are_put_side_by_side_in_order_and_none_is_lost(scripted, sound):
    import fsspec

    fsspec.register_implementation("slow", Slow)
    scripted({"words": 5, "encode_ms": 0.0, "step_ms": 0.0})
    given = [str(sound(f"{number}.wav", 1.0)) for number in range(FILES)]

    def run():
        registry = load_registry()
        request = BatchRequest(
            find_inputs(given).found,
            registry.model("speaker"),
            threads=1,
            formats=("txt",),
            folder=Path("slow://texts"),
            cluster=ClusterChoice(),
        )
        batch = BatchRun(request, start=start_local)  # it stands for the engines of Ray
        return list(batch.run()), batch.report()

    outcomes, report = run()
    assert [str(one.source) for one in outcomes] == given
    assert Slow.together.is_set()
    failed = outcomes.pop(3)
    assert failed.error.message == "slow://texts/3.txt: cannot be written: full"
    for one in outcomes:
        (path,) = one.written
        held = Slow.store[address(path).removeprefix("slow:/")].getvalue().decode()
        assert held == f"{one.transcript.text}\n"
    assert (report.done, report.failed, len(Slow.store)) == (FILES - 1, 1, FILES - 1)
    again, _ = run()
    assert [one.is_skipped for one in again] == [True] * (FILES - 1) + [False]
