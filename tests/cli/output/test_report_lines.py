"""The report as text: figures said plainly."""

from dataclasses import replace

import pytest

from as2d_cli.batch.report import RunReport
from as2d_cli.cli.output.report_lines import lines_of
from as2d_cli.domain.types import DecodeStats
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import DraftPlan
from as2d_cli.profile.run_costs import DraftSums

STATS = DecodeStats(
    tokens=100, steps=25, proposed=120, accepted=75, drafted=130, encode_s=2.0, verify_s=4.0, control_s=0.5
)
RUN = RunReport("base", "tiny", files=3, done=3, audio_s=60.0, wall_s=10.0, load_s=1.5, stats=STATS)


def with_comparison(**fields):
    found = Comparison(**({"windows": 4, "identical": 4, "drafted_s": 10.0, "plain_s": 12.0} | fields))
    return RunReport(
        "base", "tiny", files=1, done=1, audio_s=60.0, wall_s=10.0, stats=STATS, comparison=found
    )


def test_the_lines_say_what_was_done_and_how_fast():
    assert lines_of(RUN) == [
        "3 of 3 files done",
        "60.0 s of audio in 10.0 s (6.0x real time), models loaded in 1.5 s",
        "target base, drafter tiny: 4.00 tokens per step, 62% of proposed tokens accepted",
        "time: encode 20%, verify 40%, control 5%, wait 35%",
    ]


def test_windows_that_were_decoded_again_are_counted_and_their_time_is_told():
    lines = lines_of(replace(RUN, rescued_windows=2, stats=replace(STATS, rescue_s=1.0)))
    assert "rescued: 2 windows" in lines
    assert "time: encode 20%, verify 40%, control 5%, rescue 10%, wait 25%" in lines


def test_failures_skips_and_interruption_are_in_the_first_line():
    report = RunReport("base", None, files=5, done=1, skipped=1, failed=2, interrupted=True)
    assert lines_of(report) == ["interrupted: 1 of 5 files done, 1 skipped, 2 failed"]


def test_one_file_is_not_called_files():
    assert lines_of(RunReport("base", None, files=1, done=1)) == ["1 of 1 file done"]


@pytest.mark.parametrize(
    ("drafter", "lost", "proposed", "said"),
    [
        (None, False, 0, "drafter none"),
        ("tiny", False, 0, "drafter tiny (unused)"),
        ("tiny", True, 0, "drafter tiny (lost) (unused)"),
        ("tiny", True, 10, "drafter tiny (lost): 4.00 tokens per step, 50% of proposed tokens accepted"),
    ],
)
def test_what_became_of_the_drafter_is_said(drafter, lost, proposed, said):
    stats = DecodeStats(tokens=8, steps=2, proposed=proposed, accepted=proposed // 2)
    report = RunReport("base", drafter, drafter_lost=lost, files=1, done=1, wall_s=1.0, stats=stats)
    assert lines_of(report)[2] == f"target base, {said}"


def test_what_the_target_runs_on_and_how_often_is_said():
    report = RunReport(
        "base", None, files=1, done=1, audio_s=9.0, wall_s=1.0, stats=STATS, runs_as="backend mnn"
    )
    report.engines, report.threads = 2, 1
    assert lines_of(report)[1].endswith("; 2 engines with 1 thread")
    assert lines_of(report)[2].startswith("target base (backend mnn), drafter none")


@pytest.mark.parametrize(
    ("plain_s", "said"),
    [
        (12.0, "1.20x (faster than target-only)"),
        (9.3, "0.93x (slower than target-only)"),
        (10.01, "1.00x (no faster than target-only)"),
    ],
)
def test_a_speedup_is_said_plainly_whatever_it_is(plain_s, said):
    line = lines_of(with_comparison(plain_s=plain_s, slower=1))[-1]
    assert line == f"compare: speedup {said}, 10.0 s against {plain_s:.1f} s; 1 window slower"


def test_identical_windows_are_counted():
    report = with_comparison()
    assert "compare: identical, 4 of 4 windows the same text" in lines_of(report)


def test_a_difference_cannot_be_overlooked():
    report = replace(with_comparison(identical=3), differing=("a.wav at 30.0 s",))
    assert "compare: NOT IDENTICAL, 3 of 4 windows the same text" in lines_of(report)
    assert lines_of(report)[-1] == "DIFFERENT TEXT with drafts: a.wav at 30.0 s"


def test_a_window_that_failed_one_way_leaves_the_comparison_in_doubt():
    report = with_comparison(undecided=1)
    assert "compare: 1 window FAILED one of the two ways" in lines_of(report)


CHOSEN = DraftPlan(
    True, "drafts would save 20%", "hearer", cap=7, decode_threads=1, saving=0.25, plain_s=1.2, drafted_s=0.9
)


def plan_line(**given):
    report = RunReport("speaker", "hearer", plan=CHOSEN, stats=DecodeStats(wall_s=8.1), **given)
    return next(line for line in lines_of(report) if line.startswith("chosen for this device"))


def watched(**fields):
    return DraftSums(
        **({"plain_windows": 5, "plain_s": 5.2, "drafted_windows": 5, "without_s": 5.0} | fields)
    )


def test_what_was_predicted_stands_behind_what_was_measured():
    assert plan_line(predicted_plain_s=10.0, draft_sums=watched()) == (
        "chosen for this device: hearer, up to 7 draft tokens per step, passes on 1 thread: drafts would "
        "save 20%; measured 8.1 s, without drafts about 10.2 s by 5 windows; "
        "the profile predicted 7.5 s, without drafts 10.0 s"
    )


def test_without_any_undrafted_window_only_a_prediction_is_given():
    assert plan_line(predicted_plain_s=10.0).endswith(
        "; measured 8.1 s; the profile predicted 7.5 s, without drafts 10.0 s"
    )


def test_without_drafts_only_plain_decoding_was_predicted():
    report = RunReport(
        "speaker",
        "hearer",
        plan=DraftPlan(False, "drafts would cost 20%"),
        stats=DecodeStats(wall_s=10.4),
        predicted_plain_s=10.0,
        draft_sums=DraftSums(plain_windows=10, plain_s=10.4),
    )
    assert lines_of(report)[1:] == [
        "chosen for this device: no drafts: drafts would cost 20%; measured 10.4 s; "
        "the profile predicted without drafts 10.0 s"
    ]


def doubts(**given):
    report = RunReport("speaker", "hearer", plan=CHOSEN, stats=DecodeStats(wall_s=8.1), **given)
    lines = lines_of(report)
    return lines[lines.index(plan_line(**given)) + 1 :]


@pytest.mark.parametrize(("predicted_s", "times"), [(20.4, "2.0"), (5.1, "2.0"), (13.9, "1.4")])
def test_a_prediction_that_was_far_off_is_told_of(predicted_s, times):
    said = f"the profile's prediction without drafts was {times}x off"
    assert doubts(predicted_plain_s=predicted_s, draft_sums=watched()) == [
        f"{said}: the profile is kept for now"
    ]
    dropped = watched(dropped_profiles=1)
    assert doubts(predicted_plain_s=predicted_s, draft_sums=dropped) == [
        f"{said}: the profile is dropped, to be measured anew"
    ]


def test_a_prediction_that_was_nearly_right_is_not_doubted():
    assert doubts(predicted_plain_s=12.9, draft_sums=watched()) == []
    assert doubts(predicted_plain_s=12.9) == []


def test_drafts_that_were_paused_are_told_of():
    assert doubts(predicted_plain_s=10.0, draft_sums=watched(paused_windows=32)) == [
        "drafts were paused for 32 windows, as they had come to cost time"
    ]
