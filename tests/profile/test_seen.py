"""What runs saw of a drafter is kept, within bounds, by kind of work."""

from as2d_cli.domain.types import DecodeStats, Request, WindowResult
from as2d_cli.profile.seen import (
    LEAST_TRIALS,
    MOST_KINDS,
    NOTHING_TRIED,
    Seen,
    Sightings,
    name_of,
    quantiles,
    read_seen,
)


def window(tokens=90, trials=(8, 8, 8, 8, 8, 8, 8), right=(4, 5, 6, 7, 7, 8, 8), language="en"):
    stats = DecodeStats(tokens=tokens, trials=trials, right=right)
    return WindowResult("", (), language, stats=stats)


def test_counts_add_up_and_the_latest_lengths_are_kept():
    one, other = Seen((10.0,) * 7 + (5.0,) * 7, (1, 2)), Seen((20.0,) * 7 + (15.0,) * 7, (3,) * 70)
    both = one + other
    assert both.counts == (30.0,) * 7 + (20.0,) * 7
    assert both.lengths == (3,) * 64
    assert Seen() + one == one


def test_very_many_old_counts_give_way_to_new_ones():
    old, new = Seen((10_000.0,) * 7 + (9_000.0,) * 7), Seen((1_000.0,) * 7 + (0.0,) * 7)
    both = old + new
    assert both.trials == 20_000
    assert both.counts[-1] / both.counts[0] < 0.9 * 70_000 / 77_000


def test_windows_are_noted_by_task_and_language_and_by_task_alone():
    sightings = Sightings()
    for language in ("en", "en", "de"):
        sightings.add(Request(), window(language=language), 30.0)
    sightings.add(Request("translate"), window(language="de"), 30.0)
    found = sightings.added_to({})
    assert found.keys() == {"transcribe/en", "transcribe/de", "transcribe/", "translate/de", "translate/"}
    both = found["transcribe/en"] + found["transcribe/de"]
    assert (found["transcribe/"].counts, found["transcribe/"].lengths) == (both.counts, both.lengths)
    assert found["transcribe/en"].counts == (16.0,) * 7 + (8.0, 10.0, 12.0, 14.0, 14.0, 16.0, 16.0)


def test_english_that_is_translated_into_english_is_written_down():
    sightings = Sightings()
    sightings.add(Request("translate"), window(), 30.0)
    assert name_of("transcribe", "en") in sightings.added_to({})


def test_short_windows_say_nothing_about_lengths_and_undrafted_ones_nothing_about_drafts():
    sightings = Sightings()
    sightings.add(Request(), window(), 5.0)
    sightings.add(Request(), window(tokens=70, trials=(), right=()), 25.0)
    seen = sightings.added_to({})["transcribe/en"]
    assert seen.lengths == (70,)
    assert seen.trials == 56 >= LEAST_TRIALS


def test_a_run_that_saw_too_little_adds_nothing():
    sightings = Sightings()
    sightings.add(Request(), window(trials=(1,) * 7, right=(1,) * 7), 30.0)
    earlier = {"transcribe/en": Seen((9.0,) * 14)}
    assert sightings.added_to(earlier) == earlier


def test_of_very_many_kinds_the_latest_stay():
    sightings = Sightings()
    sightings.add(Request(), window(), 30.0)
    earlier = {f"transcribe/{number}": Seen((9.0,) * 14) for number in range(MOST_KINDS)}
    found = sightings.added_to(earlier)
    assert len(found) == MOST_KINDS
    assert {"transcribe/en", "transcribe/"} < found.keys()


def test_what_is_stored_is_read_again():
    seen = Seen((10.0,) * 7 + (5.0,) * 7, (80, 90), 3.5)
    assert read_seen({"counts": list(seen.counts), "lengths": list(seen.lengths), "last_at": 3.5}) == seen
    assert not Seen().differs(Seen(NOTHING_TRIED))
    assert seen.differs(Seen())


def test_quantiles_go_evenly_from_short_to_long():
    assert quantiles(range(1, 101), 5) == (11, 31, 51, 71, 91)
    assert quantiles([7], 3) == (7, 7, 7)
