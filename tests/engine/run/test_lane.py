"""What a run hands to the target's process and makes of its answers, without a process."""

from multiprocessing import Pipe
from types import SimpleNamespace

import numpy as np
import pytest

from as2d_cli.decoding import DraftStream
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import DecodeStats, FeatureSpec, Request, Window, WindowResult
from as2d_cli.engine.messages import DecodeSettings, Done, Failed, Note, Progress
from as2d_cli.engine.run.lane import Ledger, RunSettings
from as2d_cli.engine.run.scheduler import Scheduler
from as2d_cli.engine.run.tasks import WindowTask


def result(text, language=None):
    return WindowResult(text=text, tokens=(7,), language=language, stats=DecodeStats())


def task(group=0, index=0, **fields):
    return WindowTask(group, Window(index, 0, np.zeros(160, np.float32)), Request(), **fields)


class Worker:
    """A target's process: to each job it answers with what comes next in the script. None is its death."""

    def __init__(self, script):
        self.pipe, self._answers = Pipe()
        self._script = list(script)
        self.jobs = []

    def send(self, job):
        self.jobs.append(job)
        for answer in self._script.pop(0):
            self._answers.send(answer(job) if callable(answer) else answer)

    def receive(self):
        return self.pipe.recv()


class FakePair:
    """A pair without a drafter, whose target starts again at once when it dies."""

    def __init__(self, *script):
        self.target = SimpleNamespace(worker=Worker(script), survived=lambda: None)
        self.target_spec = SimpleNamespace(features=FeatureSpec(), vocab_size=10)
        self.drafter, self.is_running = None, False
        streams = [DraftStream.in_memory(4) for _ in range(4)]
        layout = SimpleNamespace(specs=(FeatureSpec(),))
        self.slots = SimpleNamespace(layout=layout, stream=streams.__getitem__, put=lambda *_: None)
        self.threads = []

    def can_draft(self, request):
        return True

    def replace_target(self):
        return "was ended by signal 9"

    def fit_threads(self, *, with_drafts):
        self.threads.append(with_drafts)
        return False


class FakeDrafter:
    """A drafter that says nothing, and notes which windows it is asked for."""

    def __init__(self, asked):
        pipe, self._other_end = Pipe()
        self.worker = SimpleNamespace(pipe=pipe)
        self.draft = lambda job: asked.append(job.index)


def done(text, language=None):
    return lambda job: Done(job.id, result(text, language))


def run(pair, tasks, ledger=None, tell=lambda _: None, guard=None):
    return list(Scheduler([pair], RunSettings(ledger or Ledger(), tell, guard)).run(tasks))


def texts(outcomes):
    return [outcome.result and outcome.result.text for outcome in outcomes]


def test_what_a_run_that_was_left_has_in_the_pipe_is_no_outcome_of_the_next():
    left_over = [Done(1, result("of the first run")), Failed(2, DecodeError("of the first run"))]
    pair = FakePair([*left_over, done("of this run")])
    assert texts(run(pair, [task()], Ledger(epoch=2))) == ["of this run"]


def test_no_epoch_is_given_twice_by_the_runs_of_an_engine():
    pair, ledger = FakePair(*[[done("a")]] * 6), Ledger()
    for _ in range(2):
        run(pair, [task(index=index) for index in range(3)], ledger)
    epochs = [job.epoch for job in pair.target.worker.jobs]
    assert epochs == sorted(set(epochs))


def test_a_language_is_kept_for_the_later_windows_of_a_file_and_for_its_next_run():
    pair, ledger = FakePair(*[[done("a", "de")]] * 7), Ledger()
    run(pair, [task(index=index) for index in range(5)], ledger)
    run(pair, [task(), task(group=1)], ledger)
    languages = [job.request.language for job in pair.target.worker.jobs]
    assert languages == [None] * 4 + ["de", "de", None], "four are handed out before the first is decided"


def test_a_target_that_dies_costs_the_first_window_and_gets_the_others_again_in_the_known_language():
    script = [[done("a", "de")], [None], [], [], [], [done("c")], [done("d")], [done("e")]]
    pair = FakePair(*script)
    outcomes = run(pair, [task(index=index) for index in range(5)])
    assert texts(outcomes) == ["a", None, "c", "d", "e"]
    assert outcomes[1].error.message == "the target's process was ended by signal 9 in a window"
    again = pair.target.worker.jobs[5:]
    assert [(job.index, job.request.language) for job in again] == [(2, "de"), (3, "de"), (4, "de")]


def test_progress_and_notes_are_passed_on():
    heard = []
    pair = FakePair([lambda job: Progress(job.id, 3, 1), Note("a note"), done("a")])
    run(pair, [task()], tell=heard.append)
    assert heard == [Progress(1, 3, 1), Note("a note")]


def test_a_known_result_keeps_its_place_without_the_target():
    pair = FakePair([done("b")])
    assert texts(run(pair, [task(known_result=result("a")), task(index=1)])) == ["a", "b"]
    assert len(pair.target.worker.jobs) == 1


def test_a_task_says_how_it_is_decoded_else_the_engine_does():
    own, general = DecodeSettings(cap=1), DecodeSettings(cap=2)
    pair = FakePair([done("a")], [done("b")])
    run(pair, [task(decode=own), task(index=1)], Ledger(decode=general))
    assert [job.decode for job in pair.target.worker.jobs] == [own, general]


class Guard:
    """Wants the first window drafted, and then no more."""

    def __init__(self):
        self._windows = 0

    def should_draft(self):
        self._windows += 1
        return self._windows <= 2

    def observe(self, stats, *, drafted, audio_s):
        return drafted


def test_a_guard_that_ends_drafting_cancels_the_drafts_of_windows_in_work():
    pair = FakePair(*[[done("a")]] * 3)
    scheduler = Scheduler([pair], RunSettings(Ledger(), lambda _: None, Guard()))
    outcomes = scheduler.run([task(index=index) for index in range(3)])
    next(outcomes)
    second = pair.target.worker.jobs[1]
    assert second.drafted
    assert pair.slots.stream(second.slot).writer(second.epoch).cancelled


class Probing(Guard):
    """Wants every third window without a draft, the first one to begin with, and stops nothing."""

    def should_draft(self):
        self._windows += 1
        return self._windows % 3 != 1

    def observe(self, stats, *, drafted, audio_s):
        return False


def test_while_a_guard_has_a_window_decoded_plainly_no_later_one_is_drafted():
    pair, asked = FakePair(*[[done("a")]] * 6), []
    pair.drafter = FakeDrafter(asked)
    scheduler = Scheduler([pair], RunSettings(Ledger(), lambda _: None, Probing()))
    outcomes = scheduler.run([task(index=index) for index in range(6)])
    seen = [list(asked) for _ in outcomes]
    assert seen == [[1, 2], [1, 2], [1, 2], [1, 2, 4, 5], [1, 2, 4, 5], [1, 2, 4, 5]]


def test_drafts_that_a_guard_stopped_are_not_asked_for_later():
    class Ending(Probing):
        def observe(self, stats, *, drafted, audio_s):
            return True

    pair, asked = FakePair(*[[done("a")]] * 4), []
    pair.drafter = FakeDrafter(asked)
    scheduler = Scheduler([pair], RunSettings(Ledger(), lambda _: None, Ending()))
    list(scheduler.run([task(index=index) for index in range(4)]))
    assert asked == []


def test_the_first_window_has_the_threads_that_it_is_decoded_with():
    pair = FakePair(*[[done("a")]] * 2)
    pair.drafter = FakeDrafter([])
    run(pair, [task(), task(index=1)], guard=Probing())
    assert pair.threads == [False, True]


@pytest.mark.parametrize("drafted", [True, False])
def test_a_run_says_whether_it_is_drafted(drafted):
    pair = FakePair([done("a")])
    list(Scheduler([pair], RunSettings(Ledger(), lambda _: None, drafted=drafted)).run([task()]))
    assert pair.target.worker.jobs[0].drafted is drafted
