"""The report as data: figures from sums."""

import json
from dataclasses import replace

import pytest

from as2d_cli.batch.report import NodeReport, RunReport
from as2d_cli.domain.types import DecodeStats
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.run_costs import DraftSums

STATS = DecodeStats(
    tokens=100,
    steps=25,
    proposed=120,
    accepted=75,
    drafted=130,
    encode_s=2.0,
    verify_s=4.0,
    control_s=0.5,
    rescue_s=1.0,
)
RUN = RunReport("base", "tiny", files=3, done=3, audio_s=60.0, wall_s=10.0, load_s=1.5, stats=STATS)


def test_time_shares_add_up_to_the_wall_time():
    assert RUN.shares == {
        "encode": 0.2,
        "verify": 0.4,
        "control": 0.05,
        "rescue": 0.1,
        "wait": pytest.approx(0.25),
    }
    assert sum(RUN.shares.values()) == pytest.approx(1)


def test_time_shares_on_a_cluster_are_of_the_time_of_all_engines():
    nodes = (NodeReport("a", 2, 4, 40.0, 10.0, None), NodeReport("b", 1, 4, 20.0, 5.0, None))
    on_cluster = replace(RUN, wall_s=5.0, nodes=nodes)
    assert on_cluster.shares["verify"] == pytest.approx(4.0 / 25.0)
    assert sum(on_cluster.shares.values()) == pytest.approx(1)
    compared = replace(on_cluster, comparison=Comparison(drafted_s=8.0, plain_s=16.0))
    assert compared.shares["verify"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("wrong", "doubtful"),
    [
        ({"failed": 1}, False),
        ({"interrupted": True}, False),
        ({"comparison": Comparison(windows=4, identical=3)}, True),
        ({"comparison": Comparison(windows=4, identical=4, undecided=1)}, True),
    ],
)
def test_a_run_succeeds_if_all_was_done_and_found_identical(wrong, doubtful):
    assert RUN.succeeded
    assert replace(RUN, comparison=Comparison(windows=4, identical=4)).succeeded
    assert not replace(RUN, **wrong).succeeded
    assert replace(RUN, **wrong).is_doubtful is doubtful


def test_where_the_text_differs_is_in_the_data():
    report = replace(RUN, comparison=Comparison(windows=4, identical=3), differing=("a.wav at 30.0 s",))
    assert report.as_dict()["comparison"]["differing"] == ["a.wav at 30.0 s"]


def test_a_run_without_any_work_has_a_report_without_division_by_zero():
    report = RunReport("base", "tiny", comparison=Comparison())
    assert report.rtfx == 0
    assert set(report.shares.values()) == {0.0}
    assert json.loads(json.dumps(report.as_dict(), allow_nan=False))["stats"]["acceptance"] == 0


def test_as_data_it_holds_the_ratios_and_what_they_are_made_of():
    data = RUN.as_dict()
    assert (data["rtfx"], data["audio_s"], data["wall_s"], data["load_s"]) == (6.0, 60.0, 10.0, 1.5)
    assert (data["stats"]["tokens_per_step"], data["stats"]["tokens"], data["stats"]["steps"]) == (
        4.0,
        100,
        25,
    )
    assert data["stats"]["acceptance"] == 0.625
    assert data["comparison"] is None


def test_what_plain_decoding_would_have_taken_comes_from_undrafted_windows():
    report = replace(RUN, predicted_plain_s=4.0)
    assert report.without_drafts_s is None
    assert report.as_dict()["without_drafts_s"] is None
    assert report.misprediction == 1.0
    sums = DraftSums(plain_windows=2, plain_s=3.0, drafted_windows=4, without_s=5.0, paused_windows=1)
    seen = replace(report, draft_sums=sums)
    assert seen.misprediction == 2.0
    assert replace(seen, predicted_plain_s=16.0).misprediction == 2.0
    data = seen.as_dict()
    assert (data["without_drafts_s"], data["plain_windows"], data["drafted_windows"]) == (8.0, 2, 4)
    assert (data["paused_windows"], data["profile_dropped"]) == (1, False)


@pytest.mark.parametrize("seconds", [2.09124, 2.09156])
def test_the_same_time_is_the_same_figure_in_every_place_of_the_data(seconds):
    found = Comparison(windows=1, identical=1, drafted_s=seconds, plain_s=seconds)
    spent = replace(RUN.stats, wall_s=seconds)
    data = replace(RUN, wall_s=seconds, stats=spent, comparison=found).as_dict()
    assert data["wall_s"] == data["stats"]["wall_s"] == data["comparison"]["drafted_s"]
    node = NodeReport("one", 1, 2, audio_s=60.0, wall_s=seconds, plan=None)
    assert node.as_dict()["wall_s"] == data["wall_s"]
