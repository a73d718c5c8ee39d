"""A run over many files: what is written, what is left alone, what happens when something goes wrong."""

import multiprocessing
import os
import signal
from dataclasses import fields, replace

import pytest

from as2d_cli.batch.display import Display
from as2d_cli.batch.inputs import Input
from as2d_cli.batch.request import BatchRequest, ClusterChoice
from as2d_cli.batch.run import BatchRun
from as2d_cli.domain.errors import ModelError, RequestError
from as2d_cli.engine.messages import DecodeSettings, ModelRef
from as2d_cli.models import weights
from as2d_cli.models.registry import load_registry
from as2d_cli.profile import store
from as2d_cli.profile.machine_load import LoadWatch
from as2d_cli.system.device import usable_cpus


class Watch(Display):
    """Remembers what it is told, and does something at the first sign of progress."""

    def __init__(self, deed=None):
        self.notes, self.begun, self.heard, self.finished, self.fetched = [], [], 0.0, [], 0
        self._deed = deed

    def fetching(self):
        self.fetched += 1
        return super().fetching()

    def note(self, line):
        self.notes.append(line)

    def begin(self, sources):
        self.begun += sources

    def steps(self, progress):
        deed, self._deed = self._deed, None
        if deed:
            deed()

    def window(self, source, seconds):
        self.heard += seconds

    def file(self, source):
        self.finished.append(source)


@pytest.fixture
def run(scripted):
    """Run a batch of the scripted pair; return its outcomes by file name, and the batch."""

    def start(*sources, watch=None, drafted=True, **options):
        registry = load_registry()
        drafter = registry.model("hearer") if drafted else None
        request = BatchRequest(
            tuple(map(Input, sources)), registry.model("speaker"), drafter, threads=1, **options
        )
        batch = BatchRun(request, watch)
        return {outcome.source.name: outcome for outcome in batch.run()}, batch

    return start


def kill(name):
    def deed():
        process = next(one for one in multiprocessing.active_children() if one.name == f"as2d {name}")
        os.kill(process.pid, signal.SIGKILL)

    return deed


def test_each_file_is_written_in_every_format_asked_for(run, sound, tmp_path):
    watch = Watch()
    outcomes, batch = run(
        sound("a.wav"),
        sound("b.wav"),
        formats=("txt", "srt"),
        timed=True,
        folder=tmp_path / "out",
        watch=watch,
    )
    text = outcomes["a.wav"].transcript.text
    assert (tmp_path / "out" / "a.txt").read_text() == text + "\n"
    assert (tmp_path / "out" / "a.srt").read_text().startswith("1\n00:00:00,000 --> ")
    assert outcomes["b.wav"].written == (tmp_path / "out" / "b.txt", tmp_path / "out" / "b.srt")
    assert [path.name for path in watch.finished] == [path.name for path in watch.begun] == ["a.wav", "b.wav"]
    assert watch.heard == pytest.approx(4)
    report = batch.report()
    assert (report.files, report.done, report.failed, report.skipped) == (2, 2, 0, 0)
    assert report.audio_s == pytest.approx(4)
    assert report.stats.tokens_per_step > 1
    assert 0 < report.wall_s < 60
    assert report.succeeded


def test_files_that_fail_leave_no_output_and_do_not_stop_the_rest(run, sound, tmp_path):
    (tmp_path / "bad.wav").write_text("no sound")
    (tmp_path / "folder").mkdir()
    sources = [tmp_path / "gone.wav", tmp_path / "bad.wav", sound("good.wav"), tmp_path / "folder"]
    outcomes, batch = run(*sources, formats=("txt",))
    messages = {name: outcome.error.message for name, outcome in outcomes.items() if outcome.error}
    assert sorted(messages) == ["bad.wav", "folder", "gone.wav"]
    assert "no such file" in messages["gone.wav"]
    assert "folder: is a directory" in messages["folder"]
    assert outcomes["good.wav"].written == (tmp_path / "good.txt",)
    assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["good.txt"]
    assert (batch.report().done, batch.report().failed) == (1, 3)
    assert not batch.report().succeeded


def test_no_model_is_fetched_or_loaded_when_nothing_is_left_to_do(run, sound, tmp_path):
    (tmp_path / "a.txt").write_text("there already")
    watch = Watch()
    outcomes, batch = run(sound("a.wav"), tmp_path / "gone.wav", formats=("txt",), watch=watch)
    assert outcomes["a.wav"].is_skipped
    assert outcomes["a.wav"].kept == (tmp_path / "a.txt",)
    assert watch.fetched == 0
    assert (batch.report().skipped, batch.report().failed) == (1, 1)


def test_only_missing_formats_are_written_unless_overwriting(run, sound, tmp_path):
    source = sound("a.wav")
    (tmp_path / "a.txt").write_text("precious")
    outcomes, _ = run(source, formats=("txt", "lrc"), timed=True)
    assert outcomes["a.wav"].kept == (tmp_path / "a.txt",)
    assert outcomes["a.wav"].written == (tmp_path / "a.lrc",)
    assert (tmp_path / "a.txt").read_text() == "precious"
    outcomes, _ = run(source, formats=("txt", "lrc"), timed=True, overwrite=True)
    assert len(outcomes["a.wav"].written) == 2
    assert (tmp_path / "a.txt").read_text() == outcomes["a.wav"].transcript.text + "\n"


def test_an_output_that_cannot_be_written_fails_its_file_only(run, sound, tmp_path):
    (tmp_path / "a.txt").mkdir()
    outcomes, batch = run(sound("a.wav"), sound("b.wav"), formats=("txt",), overwrite=True)
    assert "a.txt: cannot be written" in outcomes["a.wav"].error.message
    assert outcomes["b.wav"].written
    assert batch.report().failed == 1
    assert not list(tmp_path.glob(".as2d*"))


def test_words_are_kept_only_when_asked_for_and_times_only_when_needed(run, sound):
    source = sound("a.wav")
    (plain,) = run(source)[0].values()
    (timed,) = run(source, timed=True)[0].values()
    (words,) = run(source, word_timestamps=True)[0].values()
    assert plain.transcript.segments == ()
    assert timed.transcript.segments
    assert not any(segment.words for segment in timed.transcript.segments)
    assert all(segment.words for segment in words.transcript.segments)
    assert plain.transcript.text == timed.transcript.text == words.transcript.text


def test_a_killed_drafter_changes_no_text(run, scripted, sound):
    sources = [sound("a.wav"), sound("long.wav", 70), sound("b.wav")]
    scripted({"step_ms": 15.0}, {"delay_ms": 10.0})
    plain, _ = run(*sources, drafted=False)
    watch = Watch(kill("drafter"))
    drafted, batch = run(*sources, watch=watch)
    assert watch.notes == ["the drafter's process was ended by signal 9; starting it again"]
    assert [one.transcript.text for one in drafted.values()] == [
        one.transcript.text for one in plain.values()
    ]
    assert batch.report().succeeded


def test_a_killed_target_fails_its_file_and_the_next_one_is_done(run, scripted, sound, tmp_path):
    scripted({"step_ms": 15.0})
    watch = Watch(kill("target"))
    outcomes, batch = run(sound("a.wav"), sound("b.wav"), formats=("txt",), drafted=False, watch=watch)
    assert outcomes["a.wav"].error.message == "the target's process was ended by signal 9 in a window"
    assert outcomes["b.wav"].written == (tmp_path / "b.txt",)
    assert not (tmp_path / "a.txt").exists()
    assert (batch.report().done, batch.report().failed) == (1, 1)


def test_a_target_that_cannot_be_kept_alive_ends_the_run_with_what_was_done(run, scripted, sound):
    scripted({"exit_at": 5})
    with pytest.raises(ModelError, match="3 times in a row"):
        run(*(sound(f"{number}.wav") for number in range(5)))


def test_a_language_the_model_does_not_know_is_refused_before_any_file_is_opened(run, sound):
    watch = Watch()
    with pytest.raises(RequestError, match="'speaker' does not know welsh") as caught:
        run(sound("a.wav"), language="cy", watch=watch)
    assert caught.value.hint == "it knows: english, german, french"
    assert watch.begun == []


def test_the_language_asked_for_is_the_one_in_the_transcript(run, sound):
    assert run(sound("a.wav"), language="de")[0]["a.wav"].transcript.language == "de"


def test_the_drafter_is_named_only_if_it_was_there(run, scripted, sound):
    source = sound("a.wav")
    assert run(source)[0]["a.wav"].transcript.drafter == "hearer"
    assert run(source, drafted=False)[0]["a.wav"].transcript.drafter is None
    scripted(None, {"no_such_option": 1})
    outcomes, batch = run(source)
    assert outcomes["a.wav"].transcript.drafter is None
    assert batch.report().drafter_lost


def test_a_run_closed_early_reports_what_was_done_and_leaves_no_process(scripted, sound):
    registry = load_registry()
    sources = tuple(Input(sound(f"{number}.wav")) for number in range(4))
    batch = BatchRun(BatchRequest(sources, registry.model("speaker"), registry.model("hearer"), threads=1))
    outcomes = batch.run()
    next(outcomes)
    outcomes.close()
    report = batch.report(interrupted=True)
    assert (report.files, report.done, report.interrupted) == (4, 1, True)
    assert report.audio_s >= 2
    assert not [one for one in multiprocessing.active_children() if one.name.startswith("as2d")]


def test_a_target_that_breaks_its_contract_is_found_out_by_comparing(
    run, scripted, sound, monkeypatch, request
):
    monkeypatch.syspath_prepend(request.path.parents[1] / "data" / "liar_plugin")
    scripted({}, {"text": "all of it is in the box", "error_rate": 0.0}, plugin="liar")
    _, batch = run(sound("a.wav"), sound("b.wav"), compare=True)
    report = batch.report()
    assert (report.comparison.windows, report.comparison.identical) == (2, 0)
    assert [where.rpartition("/")[2] for where in report.differing] == ["a.wav at 0.0 s", "b.wav at 0.0 s"]
    assert not report.succeeded


def test_threads_default_to_the_processors_this_process_may_use():
    assert 0 < usable_cpus() <= (os.cpu_count() or 1)


def test_only_what_decides_the_text_of_a_file_makes_it_stale(scripted, sound):
    registry = load_registry()
    sources = (Input(sound("a.wav")),)
    usual = BatchRequest(sources, registry.model("speaker"), formats=("txt", "json", "srt"))

    def stale(**changes):
        before, after = (request.recipes() for request in (usual, replace(usual, **changes)))
        return {name for name in before if before[name] != after.get(name)}

    without = {
        "drafter": registry.model("hearer"),
        "timed": True,
        "shows_confidence": True,
        "overwrite": True,
        "fail_fast": True,
        "compare": True,
        "threads": 7,
        "jobs": 3,
        "latency_quantile": 0.5,
        "decode": DecodeSettings(3),
        "auto_budget": True,
        "others": (registry.model("hearer"),),
        "memory_limit_bytes": 1 << 30,
        "cluster": ClusterChoice("head:6379", 2),
    }
    assert {name: stale(**{name: value}) for name, value in without.items()} == {
        key: set() for key in without
    }
    assert stale(word_timestamps=True) == {"json"}
    assert stale(translate_to="en") == {"txt", "json", "srt"}
    assert stale(language_each=True) == {"txt", "json", "srt"}
    assert stale(language="de") == stale(prompt="x") == {"txt", "json", "srt"}
    assert stale(audio_track="2") == stale(channel="mix") == stale(rescue=False) == {"txt", "json", "srt"}
    assert stale(target=registry.model("hearer")) == {"txt", "json", "srt"}
    decided = {
        "asks",
        "inputs",
        "formats",
        "folder",
        "target",
        "word_timestamps",
        "language",
        "language_each",
        "translate_to",
        "prompt",
        "layout",
        "audio_track",
        "channel",
        "vad",
        "rescue",
    }
    assert {field.name for field in fields(BatchRequest)} <= set(without) | decided, (
        "decide on the new option"
    )


def test_a_profile_that_a_run_contradicts_is_gone_when_the_run_is_over(
    run, sound, tmp_path, monkeypatch, pair_costs
):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(LoadWatch, "load", lambda self: None)  # this machine may be busy
    registry = load_registry()
    target, drafter = (
        ModelRef(entry, weights.ensure(entry), 1) for entry in map(registry.model, ("speaker", "hearer"))
    )
    key = store.profile_key(target, drafter)
    store.store(key, (pair_costs(5.0, 0.2, decode_threads=1).scaled(20.0),))
    watch = Watch()
    _, batch = run(*[sound(f"{n}.wav") for n in range(9)], watch=watch, auto_budget=True, vad=False)
    report = batch.report()
    assert report.draft_sums.plain_windows >= 2
    assert report.draft_sums.dropped_profiles == 1
    assert report.as_dict()["profile_dropped"]
    assert store.load(key) is None
    assert sum("measured anew" in note for note in watch.notes) == 1


@pytest.fixture
def run_plainly(scripted, sound):
    """Run a batch of several short files without drafts on two threads; return its texts and its report."""
    sources = [sound(f"{number}.wav", 2 + 31 * (number % 3 == 0)) for number in range(9)]

    def start(count=9, watch=None, **options):
        target = load_registry().model("speaker")
        batch = BatchRun(
            BatchRequest(tuple(map(Input, sources[:count])), target, threads=2, **options), watch
        )
        outcomes = list(batch.run())
        assert [outcome.source for outcome in outcomes] == sources[:count]
        return [outcome.transcript and outcome.transcript.text for outcome in outcomes], batch.report()

    return start


def test_many_files_are_shared_among_engines_and_the_texts_are_those_of_one(run_plainly):
    one, alone = run_plainly(jobs=1)
    two, report = run_plainly()
    assert two == one
    assert all(one)
    assert (alone.engines, alone.threads) == (1, 2)
    assert (report.engines, report.threads) == (2, 1)
    assert report.done == 9
    assert report.audio_s == alone.audio_s


def test_few_files_are_left_to_one_engine_on_all_threads(run_plainly):
    assert run_plainly(count=2)[1].engines == 1
    assert run_plainly(count=2, jobs=2)[1].engines == 2


def test_little_memory_is_left_to_one_engine(run_plainly):
    assert run_plainly(memory_limit_bytes=10**8)[1].engines == 1


def test_one_of_two_engines_that_is_killed_costs_a_window_at_most(run_plainly, scripted):
    scripted({"encode_ms": 400.0})
    texts, report = run_plainly(jobs=2, watch=Watch(kill("target")))
    assert len(texts) == 9
    assert report.done >= 8


def test_a_drafter_that_was_chosen_is_kept_and_one_that_was_not_gives_way(run_plainly, scripted):
    hearer = load_registry().model("hearer")
    assert run_plainly(drafter=hearer)[1].engines == 1
    report = run_plainly(drafter=hearer, auto_budget=True)[1]
    assert report.engines == 2
    assert report.plan.reason == "2 engines side by side are faster for this much"
    assert report.stats.proposed == 0
    both = run_plainly(drafter=hearer, jobs=2)[1]
    assert both.engines == 2
    assert both.stats.proposed > 0
