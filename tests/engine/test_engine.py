"""The engine with real processes: what dies costs what it must and no more."""

import multiprocessing
import os
import signal
from dataclasses import replace
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest

from as2d_cli.domain.errors import DecodeError, ModelError, PluginError
from as2d_cli.domain.types import Request, Window
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import DecodeSettings, ModelRef
from as2d_cli.engine.processes import WorkerHandle
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource

SCRIPT = {"seed": 1, "words": 40}


def scripted(name, options):
    return ModelRef(ModelEntry(name, "scripted", "any", NoSource(), options=SCRIPT | options), None, 1)


def settings(target=None, drafter=None):
    """Return settings for scripted models; without options for the drafter there is none."""
    return EngineSettings(
        scripted("speaker", target or {}), None if drafter is None else scripted("hearer", drafter)
    )


def tasks(count, group=0):
    noise = np.random.default_rng(7)
    return [
        WindowTask(
            group, Window(index, index * 16000, noise.normal(0, 0.1, 16000).astype(np.float32)), Request()
        )
        for index in range(count)
    ]


def tokens(outcomes):
    return [outcome.result and outcome.result.tokens for outcome in outcomes]


@pytest.fixture(scope="module")
def plain():
    """Return what the target says by itself."""
    with Engine(settings()) as engine:
        return tokens(engine.run(tasks(6)))


def child(name):
    return next(process for process in multiprocessing.active_children() if process.name == f"as2d {name}")


def test_drafts_are_used_and_change_no_token(plain):
    with Engine(settings({"encode_ms": 100.0, "step_ms": 3.0}, {"error_rate": 0.1})) as engine:
        outcomes = list(engine.run(tasks(6)))
    assert tokens(outcomes) == plain
    assert len(set(plain)) == 6, "the windows must differ, or an order gone wrong would not show"
    assert sum(outcome.result.stats.accepted for outcome in outcomes) > 60


def test_outcomes_come_in_the_order_of_the_tasks_and_name_them(plain):
    given = tasks(6)
    with Engine(settings(drafter={})) as engine:
        assert [outcome.task for outcome in engine.run(iter(given))] == given


def test_target_only_runs_leave_the_drafter_idle(plain):
    with Engine(settings(drafter={})) as engine:
        outcomes = list(engine.run(tasks(6), drafted=False))
        assert tokens(outcomes) == plain
        assert sum(outcome.result.stats.proposed for outcome in outcomes) == 0
        assert tokens(engine.run(tasks(6))) == plain, "and it can be used again afterwards"


def test_a_drafter_killed_in_the_middle_costs_only_speed(plain):
    notes, killed = [], []

    def kill_once(progress):
        if not killed:
            killed.append(child("drafter").pid)
            os.kill(killed[0], signal.SIGKILL)

    slow = settings({"step_ms": 15.0}, {"delay_ms": 10.0})
    with Engine(slow, note=notes.append, progress=kill_once) as engine:
        assert tokens(engine.run(tasks(6))) == plain
        assert engine.is_drafting
        assert child("drafter").pid != killed[0], "it is started again"
    assert notes == ["the drafter's process was ended by signal 9; starting it again"]


def test_windows_that_wait_are_drafted_after_the_drafter_is_back(plain):
    killed = []

    def kill_once(progress):
        if not killed:
            killed.append(child("drafter").pid)
            os.kill(killed[0], signal.SIGKILL)

    # one window is in work for as long as a new drafter needs to start
    slow = settings({"step_ms": 100.0, "max_tokens": 60}, {"error_rate": 0.0, "start_delay_ms": 300.0})
    with Engine(slow, progress=kill_once) as engine:
        outcomes = list(engine.run(tasks(4)))
    assert killed
    assert [outcome.result.stats.accepted > 0 for outcome in outcomes[2:]] == [True, True]


def test_a_drafter_that_keeps_dying_is_given_up(plain):
    notes = []
    with Engine(settings({"step_ms": 5.0}, {"exit_at": 3}), note=notes.append) as engine:
        for _ in range(50):  # until it has been started again and has died again often enough
            assert tokens(engine.run(tasks(6))) == plain
            if not engine.is_drafting:
                break
        assert not engine.is_drafting
    assert [note.split("; ")[1] for note in notes] == ["starting it again"] * 2 + ["going on without it"]


def test_a_drafter_that_fails_in_every_window_is_told_of_once(plain):
    notes = []
    with Engine(settings(drafter={"fail_at": 3}), note=notes.append) as engine:
        assert tokens(engine.run(tasks(6))) == plain
        assert engine.is_drafting
    assert len(notes) == 1
    assert notes[0].startswith("a draft of plugin 'scripted' (as2d")
    assert "costs only speed: the scripted drafter fails before token 3" in notes[0]


def test_a_drafter_that_cannot_be_loaded_is_done_without(plain):
    notes = []
    with Engine(settings(drafter={"no_such_option": 1}), note=notes.append) as engine:
        assert tokens(engine.run(tasks(6))) == plain
        assert not engine.is_drafting
    assert len(notes) == 1
    assert notes[0].startswith(
        "going on without the drafter: model 'hearer': the scripted plugin has no option 'no_such_option'"
        " (options: "
    )


@pytest.mark.parametrize("drafter", [None, {"error_rate": 0.9}], ids=["alone", "with drafter"])
def test_a_killed_target_fails_the_window_in_work_and_no_other(plain, drafter):
    killed = []

    def kill_in_third_window(progress):
        if len(done) == 2 and not killed:
            killed.append(child("target").pid)
            os.kill(killed[0], signal.SIGKILL)

    done = []
    with Engine(settings({"step_ms": 15.0}, drafter), progress=kill_in_third_window) as engine:
        for outcome in engine.run(tasks(6)):
            done.append(outcome)
    assert tokens(done) == [*plain[:2], None, *plain[3:]]
    assert isinstance(done[2].error, DecodeError)
    assert done[2].error.message == "the target's process was ended by signal 9 in a window"


def test_a_target_that_dies_in_every_window_ends_the_run():
    with Engine(settings({"exit_at": 5})) as engine:
        outcomes = engine.run(tasks(6))
        assert [next(outcomes).error is not None for _ in range(2)] == [True, True]
        with pytest.raises(ModelError, match=r"ended with code 70, 3 times in a row"):
            next(outcomes)


def test_a_window_that_cannot_be_decoded_carries_the_error_and_the_target_lives_on():
    with Engine(settings({"fail_at": 5})) as engine:
        first = child("target").pid
        outcomes = list(engine.run(tasks(3)))
        assert child("target").pid == first
    assert [outcome.result for outcome in outcomes] == [None] * 3
    assert all("fails after 5 rows" in outcome.error.message for outcome in outcomes)


def test_a_target_that_cannot_be_loaded_is_an_error_and_leaves_nothing_behind():
    with pytest.raises(PluginError, match="no option 'nonsense'"), Engine(settings({"nonsense": 1}, {})):
        pass
    assert not [one for one in multiprocessing.active_children() if one.name.startswith("as2d")]


def test_no_process_and_no_shared_memory_is_left_after_the_end():
    with Engine(settings(drafter={})) as engine:
        list(engine.run(tasks(1)))
        memory = engine.pair.slots.name
        SharedMemory(memory).close()
    assert not [one for one in multiprocessing.active_children() if one.name.startswith("as2d")]
    with pytest.raises(FileNotFoundError):
        SharedMemory(memory)


def test_ctrl_c_while_features_are_written_for_the_processes_is_all_that_is_raised(monkeypatch):
    class Interrupting:
        def __array__(self, *_, **__):
            raise KeyboardInterrupt

    monkeypatch.setattr("as2d_cli.engine.run.lane.log_mel", lambda *_: Interrupting())
    with pytest.raises(KeyboardInterrupt), Engine(settings()) as engine:
        list(engine.run(tasks(1)))


def test_tasks_are_taken_only_a_few_ahead_of_the_window_in_work():
    taken = []

    def count():
        for task in tasks(20):
            taken.append(task)
            yield task

    with Engine(settings(drafter={})) as engine:
        for done, _ in enumerate(engine.run(count()), start=1):
            assert len(taken) <= done + 4


def test_a_window_tells_its_time_line_if_asked(plain):
    target, drafter = {"encode_ms": 60.0, "step_ms": 3.0}, {"error_rate": 0.1}
    with Engine(settings(target, drafter)) as engine:
        outcomes = list(engine.run([replace(task, traced=True) for task in tasks(2)]))
        untraced = list(engine.run(tasks(1)))
    assert tokens(outcomes) == plain[:2]
    assert untraced[0].result.trace is None
    for outcome in outcomes:
        trace, stats = outcome.result.trace, outcome.result.stats
        moments = [step.began_s for step in trace.steps]
        assert moments == sorted(moments)
        assert moments[0] >= trace.began_s + stats.encode_s
        assert moments[-1] + trace.steps[-1].ms / 1e3 <= trace.began_s + stats.wall_s
        assert [token for step in trace.steps for token in step.tokens] == list(outcome.result.tokens)
        assert len(trace.draft) == len(trace.published_s) >= stats.accepted > 0
        assert trace.draft_began_s <= min(trace.published_s)
        assert trace.published_s[stats.accepted - 1] <= moments[-1], "what was accepted had been published"


def test_without_a_draft_the_time_line_has_none():
    with Engine(settings({"step_ms": 0.1}, {})) as engine:
        outcome = next(iter(engine.run([replace(tasks(1)[0], traced=True)], drafted=False)))
    trace = outcome.result.trace
    assert (trace.draft, trace.published_s, trace.draft_began_s) == ((), (), None)


def test_windows_of_one_run_can_be_decoded_in_different_ways_side_by_side(plain):
    with Engine(settings({"encode_ms": 100.0}, {"error_rate": 0.0})) as engine:
        most = []
        for cap in (0, 3, 0):
            decode = DecodeSettings(cap=cap, name=str(cap))
            outcomes = list(engine.run([replace(task, decode=decode, traced=True) for task in tasks(2)]))
            assert tokens(outcomes) == plain[:2]
            most.append(max(step.proposed for outcome in outcomes for step in outcome.result.trace.steps))
    assert most == [0, 3, 0]


def test_a_model_that_reads_decodes_and_drafts_from_the_request_alone():
    def asked(*questions):
        silence = np.zeros(0, np.float32)
        return [
            WindowTask(0, Window(index, 0, silence), Request(task="ask", question=one, passage="It is said."))
            for index, one in enumerate(questions)
        ]

    reads = {"listens": False}
    with Engine(
        settings({"encode_ms": 100.0, "step_ms": 3.0} | reads, {"error_rate": 0.1} | reads)
    ) as engine:
        assert engine.target_spec.tasks == ("ask",)
        drafted = list(engine.run(asked("What?", "Who?", "What?")))
        plain = tokens(engine.run(asked("What?", "Who?", "What?"), drafted=False))
    assert tokens(drafted) == plain
    assert plain[0] == plain[2] != plain[1]
    assert sum(outcome.result.stats.accepted for outcome in drafted) > 30


INNER = {"inner": True, "error_rate": 0.1}


def test_a_drafter_in_the_targets_process_drafts_every_window_and_changes_no_token(plain):
    with Engine(settings({}, INNER)) as engine:
        assert len(engine.process_ids) == 1
        assert engine.is_drafting
        outcomes = list(engine.run([replace(task, traced=True) for task in tasks(6)]))
        undrafted = list(engine.run(tasks(2), drafted=False))
    assert tokens(outcomes) == plain
    assert sum(outcome.result.stats.accepted for outcome in outcomes) > 120
    assert all(len(outcome.result.trace.draft) > 30 for outcome in outcomes)
    assert [outcome.result.stats.drafted for outcome in undrafted] == [0, 0]


def test_a_drafter_in_the_targets_process_that_fails_costs_only_speed_and_is_told_of_once(plain):
    notes = []
    with Engine(settings({}, INNER | {"fail_at": 3}), note=notes.append) as engine:
        assert tokens(engine.run(tasks(6))) == plain
    assert len(notes) == 1
    assert "costs only speed: the scripted drafter fails before token 3" in notes[0]


@pytest.mark.parametrize("frames", [0, 2999, 10**9])
def test_a_drafter_whose_front_end_windows_do_not_fit_is_done_without(plain, frames):
    notes = []
    with Engine(settings({}, {"frames": frames}), note=notes.append) as engine:
        assert tokens(engine.run(tasks(2))) == plain[:2]
    assert len(notes) == 1
    assert notes[0].startswith(f"going on without the drafter: its features are 80 times {frames}, which")


@pytest.mark.parametrize("options", [{"no_such_option": 1}, {"tokenizer": "bytes"}], ids=str)
def test_a_drafter_in_the_targets_process_that_cannot_be_loaded_is_done_without(plain, options):
    notes = []
    with Engine(settings({}, INNER | options), note=notes.append) as engine:
        assert tokens(engine.run(tasks(2))) == plain[:2]
        assert not engine.is_drafting
    assert len(notes) == 1
    assert notes[0].startswith("going on without the drafter: model 'hearer'")


def test_a_dropped_drafter_in_the_targets_process_drafts_no_more(plain):
    with Engine(settings({}, INNER)) as engine:
        engine.drop_drafter()
        outcomes = list(engine.run(tasks(2)))
        assert not engine.is_drafting
    assert tokens(outcomes) == plain[:2]
    assert [outcome.result.stats.drafted for outcome in outcomes] == [0, 0]


def test_what_was_said_before_is_looked_up():
    lookup = ModelRef(ModelEntry("lookup", "lookup", "drafter", NoSource()), None, 1)
    said = " ".join(f"{word} day" for word in ("good", "first", "new", "last", "long", "bad", "old", "same"))
    same = scripted("speaker", {"text": said})
    fixed = DecodeSettings(draft_tokens=7)  # a controller would learn from what a busy machine's passes take
    with Engine(EngineSettings(same, lookup, fixed)) as engine:
        outcomes = list(engine.run(tasks(3, group=0)))
        again = list(engine.run(tasks(1, group=0)))
    passes = [outcome.result.stats.steps for outcome in outcomes]
    assert passes[2] < passes[0] / 2
    assert [outcome.result.stats.steps for outcome in again] == passes[:1], "it has not been said before it"


class Content:
    """A guard that wants every window drafted."""

    def should_draft(self):
        return True

    def observe(self, stats, *, drafted, audio_s):
        """Stop nothing."""


class Stopping:
    """A guard that ends drafts with the first window that had one."""

    def __init__(self):
        self.undrafted, self._is_paused = 0, False

    def should_draft(self):
        self.undrafted += self._is_paused
        return not self._is_paused

    def observe(self, stats, *, drafted, audio_s):
        ends, self._is_paused = drafted and not self._is_paused, self._is_paused or drafted
        return ends


def test_a_guard_that_sees_a_loss_stops_the_drafts_also_of_windows_in_work(plain):
    guard = Stopping()
    with Engine(settings({"encode_ms": 50.0, "step_ms": 3.0}, {"delay_ms": 4.0})) as engine:
        outcomes = list(engine.run(tasks(6), guard=guard))
    assert tokens(outcomes) == plain
    assert guard.undrafted == 2, "four windows were handed out when the first one came back"
    assert [outcome.result.stats.proposed for outcome in outcomes[4:]] == [0, 0]


def test_a_guard_that_is_content_changes_nothing(plain):
    with Engine(settings({"encode_ms": 100.0, "step_ms": 3.0}, {})) as engine:
        outcomes = list(engine.run(tasks(6), guard=Content()))
    assert tokens(outcomes) == plain
    assert sum(outcome.result.stats.accepted for outcome in outcomes) > 0


def test_a_target_that_shares_its_threads_gets_them_back_while_drafts_are_stopped(plain):
    pair = settings({"encode_ms": 50.0}, {})
    pair = replace(pair, target=replace(pair.target, threads=2, decode_threads=1))
    with Engine(pair) as engine:
        before = engine.process_ids[0]
        assert tokens(engine.run(tasks(6), guard=Stopping())) == plain
        assert engine.process_ids[0] != before, "it was loaded again, with the work that it had"
        again = engine.process_ids[0]
        assert tokens(engine.run(tasks(6), guard=Content())) == plain
        assert engine.process_ids[0] != again


class Pausing:
    """A guard that wants the first and the last window drafted, and those between not."""

    def __init__(self, windows):
        self._asked, self._windows = 0, windows

    @property
    def is_paused(self):
        return self._asked < self._windows - 1

    def should_draft(self):
        self._asked += 1
        return self._asked == self._windows

    def observe(self, stats, *, drafted, audio_s):
        """Take nothing from it."""


def test_windows_before_the_next_drafted_one_keep_all_threads(plain, monkeypatch):
    pair = settings({"encode_ms": 20.0}, {})
    pair = replace(pair, target=replace(pair.target, threads=2, decode_threads=1))
    with Engine(pair) as engine:
        log, restart, send = [], engine.pair.restart_target, WorkerHandle.send
        monkeypatch.setattr(
            engine.pair, "restart_target", lambda threads: (restart(threads), log.append(threads))
        )
        monkeypatch.setattr(
            WorkerHandle, "send", lambda worker, message: (log.append(message), send(worker, message))
        )
        assert tokens(engine.run(tasks(6), guard=Pausing(6))) == plain
    begun_with_few = [log[at + 1] for at, entry in enumerate(log) if entry == 1]
    assert begun_with_few, "the last window is drafted"
    assert all(job.drafted for job in begun_with_few)


def test_other_threads_for_the_passes_are_another_process_and_the_same_text(plain):
    pair = settings(drafter={})
    pair = replace(pair, target=replace(pair.target, threads=2))
    with Engine(pair) as engine:
        before = engine.process_ids
        engine.share_threads(None)
        assert engine.process_ids == before
        engine.share_threads(1)
        assert engine.process_ids[0] != before[0]
        assert tokens(engine.run(tasks(6))) == plain


def test_drafts_run_ahead_into_the_next_windows_and_files(plain):
    unused = DecodeSettings(cap=0)  # the target takes its time
    given = [replace(task, traced=True, decode=unused) for task in (*tasks(3, group=0), *tasks(3, group=1))]
    pace = settings({"encode_ms": 400.0, "step_ms": 8.0}, {"start_delay_ms": 10.0, "delay_ms": 0.5})
    with Engine(pace) as engine:
        traces = [outcome.result.trace for outcome in engine.run(given)]
    assert traces[0].draft_began_s < traces[0].steps[0].began_s, "before the target has heard the window"
    for trace in traces[1:]:
        assert max(trace.published_s) < trace.began_s, "complete before the target comes to the window"
    assert traces[3].draft_began_s < traces[1].began_s, "of the next file, too, windows before"
