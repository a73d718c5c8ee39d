"""Several pairs share the windows of a run, whichever is faster: order, languages, deaths."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

from as2d_cli.decoding import DraftStream
from as2d_cli.domain.errors import DecodeError, ModelError
from as2d_cli.domain.types import DecodeStats, FeatureSpec, Request, Window, WindowResult
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import Done, Failed, Job, ModelRef, Note
from as2d_cli.engine.run import scheduler as scheduling
from as2d_cli.engine.run.lane import Ledger, RunSettings
from as2d_cli.engine.run.scheduler import Scheduler
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource

SILENT, BROKEN = "silent", "broken"


class Worker:
    """A target's process that decodes when `Machine` lets it, and may be dead by then."""

    def __init__(self, machine):
        self.pipe, self.jobs, self._machine = self, [], machine

    def send(self, job):
        if isinstance(job, Job):
            self.jobs.append(job)

    def receive(self):
        if self._machine.kills():
            self.jobs.clear()
            return None
        job = self.jobs.pop(0)
        spoken = self._machine.spoken[job.group][job.index]
        if spoken == BROKEN:
            return Failed(job.id, DecodeError("broken"))
        language = job.request.language or spoken
        self._machine.decoded += 1
        told = None if spoken == SILENT else language
        return Done(job.id, WindowResult(f"{job.index} in {told}", (7,), told, stats=DecodeStats()))


class FakePair:
    """A pair without a drafter, whose target starts again when it dies, but not for ever."""

    def __init__(self, machine, deaths=10**6):
        self.target = SimpleNamespace(worker=Worker(machine), survived=lambda: None)
        self.target_spec = SimpleNamespace(features=FeatureSpec(), vocab_size=10)
        self.drafter, self.is_running, self.is_closed, self._deaths = None, True, False, deaths
        streams = [DraftStream.in_memory(4) for _ in range(4)]
        layout = SimpleNamespace(specs=(FeatureSpec(),))
        self.slots = SimpleNamespace(layout=layout, stream=streams.__getitem__, put=lambda *_: None)

    def can_draft(self, request):
        return False

    def replace_target(self):
        self._deaths -= 1
        if self._deaths < 0:
            raise ModelError("the target's process ended, 3 times in a row")
        return "was ended by signal 9"

    def close(self, *, at_once):
        self.is_closed = at_once


class Machine:
    """Lets the pairs go on in random order; `spoken` is the language of each window by file."""

    def __init__(self, spoken, seed, kill_share=0.0):
        self.spoken, self.decoded = spoken, 0
        self._draw, self._kill_share = random.Random(seed), kill_share

    def kills(self):
        return self._draw.random() < self._kill_share

    def wait(self, pipes):
        at_work = [pipe for pipe in pipes if pipe.jobs]
        return self._draw.sample(at_work, self._draw.randint(1, len(at_work)))

    def tasks(self):
        for group, windows in enumerate(self.spoken):
            for index, spoken in enumerate(windows):
                known = WindowResult("", (), None) if spoken == "known" else None
                yield WindowTask(group, Window(index, 0, np.zeros(160, np.float32)), Request(), known)


@pytest.fixture
def run(monkeypatch):
    def start(machine, pairs, told=lambda message: None):
        monkeypatch.setattr(scheduling, "wait", machine.wait)
        monkeypatch.setattr("as2d_cli.engine.run.lane.log_mel", lambda *_: None)
        return list(Scheduler(pairs, RunSettings(Ledger(), told)).run(machine.tasks()))

    return start


def texts(outcomes):
    return [outcome.result.text if outcome.result else None for outcome in outcomes]


def expected(spoken):
    for windows in spoken:
        language = next((code for code in windows if code not in (SILENT, BROKEN, "known")), None)
        for index, code in enumerate(windows):
            told = None if code == SILENT else language
            yield {BROKEN: None, "known": ""}.get(code, f"{index} in {told}")


@pytest.mark.parametrize("seed", range(60))
def test_texts_and_their_order_do_not_depend_on_how_many_pairs_there_are_nor_on_which_is_faster(seed, run):
    draw = random.Random(seed)
    codes = ["en", "en", "en", "de", "fr", SILENT, BROKEN, "known"]
    spoken = [draw.choices(codes, k=draw.randint(1, 40)) for _ in range(draw.randint(1, 6))]
    for count in (1, 2, 3, 5):
        machine = Machine(spoken, seed)
        outcomes = run(machine, [FakePair(machine) for _ in range(count)])
        assert texts(outcomes) == list(expected(spoken)), count
        places = [(outcome.task.group, outcome.task.window.index) for outcome in outcomes]
        assert places == sorted(places)


@pytest.mark.parametrize("seed", range(20))
def test_deaths_cost_windows_in_work_only(seed, run):
    spoken = [["de", *["en"] * 30], ["fr"] * 20]
    machine = Machine(spoken, seed, kill_share=0.1)
    outcomes = run(machine, [FakePair(machine) for _ in range(3)])
    assert len(outcomes) == 51
    lost = [outcome for outcome in outcomes if outcome.result is None]
    assert all("was ended by signal 9" in outcome.error.message for outcome in lost)
    assert len(lost) < 25
    for group, code in ((0, {"de", "en"}), (1, {"fr"})):
        told = {
            outcome.result.language for outcome in outcomes if outcome.result and outcome.task.group == group
        }
        assert len(told) == 1
        assert told <= code


def test_one_language_is_decoded_once(run):
    machine = Machine([["en"] * 50], seed=1)
    run(machine, [FakePair(machine) for _ in range(4)])
    assert machine.decoded == 50


def test_a_pair_that_cannot_be_kept_alive_leaves_its_windows_to_the_others(run):
    machine, told = Machine([["en"] * 40], seed=2, kill_share=0.5), []
    mortal, *others = pairs = [FakePair(machine, deaths=2), FakePair(machine), FakePair(machine)]
    outcomes = run(machine, pairs, told.append)
    assert pairs == others
    assert mortal.is_closed
    assert [message for message in told if isinstance(message, Note)] == [
        Note("the target's process ended, 3 times in a row; going on with one engine less")
    ]
    assert [outcome.task.window.index for outcome in outcomes] == list(range(40))


def test_the_last_pair_that_cannot_be_kept_alive_ends_the_run(run):
    machine = Machine([["en"] * 40], seed=3, kill_share=1.0)
    with pytest.raises(ModelError, match="3 times in a row"):
        run(machine, [FakePair(machine, deaths=2) for _ in range(2)])


def test_real_processes_side_by_side_give_the_text_of_one(tmp_path):
    options = {"text": "a text of some words that differs from window to window", "step_ms": 1}
    model = ModelRef(ModelEntry("scripted", "scripted", "any", NoSource(), options=options), tmp_path, 1)
    draw = np.random.default_rng(4)
    tasks = [
        WindowTask(index // 5, Window(index % 5, 0, draw.standard_normal(16_000, np.float32)), Request())
        for index in range(15)
    ]
    found = []
    for count in (1, 2, 3):
        with Engine(EngineSettings(model, None, pairs=count)) as engine:
            assert len(set(engine.process_ids)) == count
            found.append([outcome.result.tokens for outcome in engine.run(tasks)])
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 15
