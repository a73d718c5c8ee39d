"""What a run showed of a profile reaches the next one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.domain.types import DecodeStats, Request, WindowResult
from as2d_cli.profile import choice as choice_module
from as2d_cli.profile import store
from as2d_cli.profile import write_back as module
from as2d_cli.profile.choice import DraftChoice
from as2d_cli.profile.guard import guard_of
from as2d_cli.profile.machine_load import Load
from as2d_cli.profile.seen import Sightings
from as2d_cli.profile.store import Work
from as2d_cli.profile.write_back import MIN_WINDOWS, write_back

FIXED_WORK_MS = 30.0


@pytest.fixture
def notes():
    return []


@pytest.fixture
def choice(settings, pair_costs, monkeypatch, notes):
    """A choice by a profile that predicts 600 ms for encoding, 4.9 ms for a token, and good drafts."""
    monkeypatch.setattr(store, "fixed_work_ms", lambda: FIXED_WORK_MS)
    monkeypatch.setattr(choice_module, "fixed_work_ms", lambda: FIXED_WORK_MS)
    monkeypatch.setattr(module, "fixed_work_ms", lambda: FIXED_WORK_MS)
    pair = settings({}, {})
    store.store(store.profile_key(pair.target, pair.drafter), (pair_costs(5.0, 0.2, decode_threads=1),))
    return DraftChoice(pair, note=notes.append)


def stats(encode_s, token_s):
    return DecodeStats(
        tokens=100, steps=100, encode_s=encode_s, verify_s=100 * token_s, wall_s=encode_s + 100 * token_s
    )


def end_run(choice, windows=20, *, plain=(0.6, 0.0049), drafted=(0.6, 0.002), load=None, sightings=None):
    """Choose by what is stored, decode windows that take so long to encode and per token, and write back."""
    _, plan = choice.by_profiles()
    guard = guard_of(plan)
    for _ in range(windows):
        asks = guard.should_draft()
        guard.observe(stats(*(drafted if asks else plain)), drafted=asks, audio_s=30.0)
    write_back(choice, plan, guard, load, sightings or Sightings())
    return guard.sums


def stored(choice):
    return choice.stored().get("hearer")


def files():
    return {path: path.read_text() for path in store.profiles_folder().iterdir()}


def test_a_run_as_predicted_leaves_the_profile_as_it_is(choice, notes):
    before = files()
    assert not end_run(choice).dropped_profiles
    assert files() == before
    assert not notes


@pytest.mark.parametrize("plain", [(0.6, 0.001), (0.6, 0.02), (0.2, 0.0049), (2.0, 0.0049)])
def test_a_profile_that_the_run_contradicts_is_dropped_with_one_note(choice, notes, plain):
    assert end_run(choice, plain=plain).dropped_profiles == 1
    assert stored(choice) is None
    assert len(notes) == 1
    assert "measured anew" in notes[0]


def test_a_run_that_has_just_measured_drops_nothing_but_notes_what_it_saw(choice):
    _, plan = choice.by_profiles()
    guard = guard_of(plan)
    for _ in range(20):
        asks = guard.should_draft()
        guard.observe(stats(0.6, 0.02), drafted=asks, audio_s=30.0)
    write_back(choice, plan, guard, None, sighted(right=50), doubts=False)
    assert not guard.dropped_profiles
    assert stored(choice).seen.keys() == {"transcribe/en", "transcribe/"}


def test_a_slower_device_does_not_contradict_the_profile(choice, monkeypatch):
    monkeypatch.setattr(choice_module, "fixed_work_ms", lambda: 2 * FIXED_WORK_MS)
    monkeypatch.setattr(module, "fixed_work_ms", lambda: 2 * FIXED_WORK_MS)
    end_run(choice, plain=(1.2, 0.0098), drafted=(1.2, 0.004))
    assert stored(choice) is not None


def test_a_wrong_profile_that_promised_nothing_is_dropped_too(choice, pair_costs):
    costs = (pair_costs(9000.0, 90.0, decode_threads=1),)
    store.store(store.profile_key(choice.settings.target, choice.settings.drafter), costs)
    assert end_run(choice, plain=(0.6, 0.02)).drafted_windows == 0
    assert stored(choice) is None


def test_a_short_run_writes_nothing(choice):
    end_run(choice, MIN_WINDOWS - 1, plain=(0.6, 0.02))
    end_run(choice, MIN_WINDOWS - 1, drafted=(0.9, 0.01))
    assert stored(choice).record == store.DraftRecord()


def test_a_run_beside_other_programs_writes_nothing(choice, notes):
    busy = Load(others=1.0, present=2, usable=2)
    end_run(choice, plain=(0.6, 0.02), load=busy)
    end_run(choice, drafted=(0.9, 0.01), load=busy)
    assert stored(choice).record == store.DraftRecord()
    assert not notes


def test_a_drafter_that_lost_is_done_without_for_a_week_then_tried_again(choice, monkeypatch):
    for _ in range(3):
        end_run(choice, 40, drafted=(0.8, 0.0049))
    chosen, plan = choice.by_profiles()
    assert chosen.drafter is None
    assert (
        plan.reason
        == "hearer is left out: in earlier runs it cost 18% of the time: no further try for a week"
    )
    now = store.time.time()
    monkeypatch.setattr(store.time, "time", lambda: now + 8 * 86400)
    assert choice.by_profiles()[0].drafter is not None
    end_run(choice, 40)
    assert stored(choice).record.loss == 0, "it did well this time"


def test_another_drafter_takes_the_place_of_one_that_lost(choice, pair_costs):
    other = replace(
        choice.settings.drafter,
        path=Path("c3d4"),
        entry=replace(choice.settings.drafter.entry, name="quick"),
    )
    both = replace(choice, others=(other,))
    store.store(store.profile_key(both.settings.target, other), (pair_costs(90.0, 0.4, decode_threads=1),))
    for _ in range(2):
        end_run(both, 40, drafted=(0.8, 0.0049))
    assert both.by_profiles()[0].drafter == other
    assert stored(both).record.windows
    assert not both.stored()["quick"].record.windows


def test_a_profile_without_a_record_is_read(choice):
    (path,) = files()
    raw = json.loads(path.read_text())
    del raw["record"]
    path.write_text(json.dumps(raw))
    assert stored(choice).record == store.DraftRecord()


@pytest.mark.parametrize(
    "record", [3, {"windows": "many"}, {"windows": 4.0}, {"drafted_s": -1}, {"other": 1}]
)
def test_a_damaged_record_is_found_out(choice, notes, record):
    (path,) = files()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"record": record}))
    assert stored(choice) is None
    assert "damaged" in notes[0]


def test_a_profile_that_cannot_be_written_costs_a_note(choice, notes, monkeypatch):
    def fails(*_):
        raise store.OutputError("no space")

    monkeypatch.setattr(store, "write_text_atomic", fails)
    end_run(choice, drafted=(0.9, 0.01))
    assert notes == ["the profile stays as it was: no space"]


def test_a_profile_that_cannot_be_removed_costs_a_note(choice, notes, monkeypatch):
    def fails(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", fails)
    assert not end_run(choice, plain=(0.6, 0.02)).dropped_profiles
    assert len(notes) == 1
    assert "cannot be removed: Permission denied" in notes[0]


def sighted(right, windows=10, language="en"):
    """Return what a run saw of a drafter that had so many of 100 tokens right in each of its windows."""
    sightings = Sightings()
    for _ in range(windows):
        counts = DecodeStats(tokens=100, trials=(20, 10, 10, 10, 10, 20, 20), right=(*[right // 10] * 7,))
        sightings.add(Request(), WindowResult("", (), language, stats=counts), 30.0)
    return sightings


def test_a_drafter_that_was_seen_to_be_of_no_use_is_not_chosen_again_for_such_work(choice):
    assert choice.by_profiles()[1].drafting
    end_run(choice, 3, sightings=sighted(right=0))
    german = replace(choice, work=Work(language="de"))
    english = replace(choice, work=Work(language="en"))
    assert not english.by_profiles()[1].drafting
    assert not choice.by_profiles()[1].drafting, "in no particular language, it was English that was seen"
    assert german.by_profiles()[1].drafting, "nothing is known of it in German"
    assert stored(choice).seen["transcribe/en"].lengths == (100,) * 10
    end_run(english, 3, sightings=sighted(right=100, windows=40))
    assert not english.by_profiles()[1].drafting, "a run without drafts has seen nothing of the drafter"


def test_a_drafter_that_was_of_no_use_is_tried_again_after_a_week(choice, monkeypatch):
    english = replace(choice, work=Work(language="en"))
    end_run(choice, 3, sightings=sighted(right=0))
    assert not english.by_profiles()[1].drafting
    now = store.time.time()
    monkeypatch.setattr(store.time, "time", lambda: now + 8 * 86400)
    assert english.by_profiles()[1].drafting
    end_run(english, 3, sightings=sighted(right=0))
    assert not english.by_profiles()[1].drafting, "it was seen again"


def test_a_drafter_is_known_by_language(choice):
    end_run(choice, 3, sightings=sighted(right=100, windows=40, language="de"))
    end_run(choice, 3, sightings=sighted(right=0, windows=40, language="en"))
    worst = [replace(choice, work=Work(language=code)).by_profiles()[1].worst for code in ("de", "en")]
    assert worst[0] < worst[1]


def test_too_few_tokens_say_nothing(choice):
    before = files()
    end_run(choice, 3, sightings=sighted(right=0, windows=0))
    assert files() == before


def test_an_unseen_drafter_does_not_take_the_place_of_one_that_pays(choice, pair_costs):
    quick = replace(
        choice.settings.drafter,
        path=Path("c3d4"),
        entry=replace(choice.settings.drafter.entry, name="quick"),
    )
    both = replace(choice, others=(quick,))
    store.store(store.profile_key(both.settings.target, quick), (pair_costs(0.1, 0.001, decode_threads=1),))
    assert both.by_profiles()[1].drafter == "hearer"
    end_run(both, 3, sightings=sighted(right=0, windows=40))
    assert both.by_profiles()[1].drafter == "quick"
