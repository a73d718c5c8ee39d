import pytest

from as2d_cli.bench.report.summary import summarise, window_speedups
from as2d_cli.bench.trials import TrialStep


def test_speedups_are_sums_over_sums_not_means_of_ratios(make_trial):
    trials = [
        make_trial(window=0, wall_s=9.0, block=0),
        make_trial(window=1, wall_s=1.0, block=1),
        make_trial("as2d", window=0, wall_s=3.0, block=0),
        make_trial("as2d", window=1, wall_s=2.0, block=1),
    ]
    plain, drafted = summarise(trials)
    assert plain.batch_speedup == plain.window_speedup == 1.0
    assert drafted.batch_speedup == pytest.approx(10 / 5)  # a mean of ratios would say 1.75
    assert drafted.window_speedup == pytest.approx(10 / 5)
    assert drafted.rtfx == pytest.approx(60 / 5)
    assert drafted.tokens_per_s == pytest.approx(6 / 5)
    assert (drafted.slower, drafted.clearly_slower) == (0.5, 0.5)


def test_the_wall_time_of_a_block_counts_once_however_many_windows_it_has(make_trial):
    trials = [
        make_trial(mode, window=window, block_wall_s=wall, wall_s=1.0)
        for mode, wall in (("target-only", 4.0), ("as2d", 2.0))
        for window in range(3)
    ]
    plain, drafted = summarise(trials)
    assert (plain.wall_s, drafted.wall_s) == (4.0, 2.0)
    assert drafted.batch_speedup == 2.0


def test_the_least_latency_over_the_repeats_decides_whether_a_window_is_slower(make_trial):
    trials = [make_trial(wall_s=1.0), make_trial(wall_s=5.0, repeat=1)]
    trials += [make_trial("as2d", wall_s=6.0), make_trial("as2d", wall_s=1.02, repeat=1)]
    drafted = summarise(trials)[1]
    assert (drafted.slower, drafted.clearly_slower) == (1.0, 0.0)
    assert drafted.window_speedup == pytest.approx(1 / 1.02)
    assert drafted.batch_speedups == pytest.approx((1 / 6, 5 / 1.02))
    assert drafted.repeats == 2


def test_a_mode_that_failed_half_way_is_compared_on_what_it_did(make_trial):
    trials = [make_trial(window=0, wall_s=2.0), make_trial(window=1, wall_s=8.0, block=1)]
    trials.append(make_trial("as2d", window=0, wall_s=1.0))
    drafted = summarise(trials)[1]
    assert (drafted.batch_speedup, drafted.window_speedup, drafted.windows) == (2.0, 2.0, 1)


def test_ratios_of_drafts_come_from_sums(make_trial):
    trials = [make_trial(window=0), make_trial(window=1)]
    trials.append(make_trial("as2d", window=0, drafted=10, steps=(TrialStep(4, 6, 3, 8, 0.0, 1.0),)))
    steps = (TrialStep(1, 2, 0, 2, 0.0, 1.0), TrialStep(1, 0, 0, 0, 1.0, 1.0))
    trials.append(make_trial("as2d", window=1, drafted=2, steps=steps))
    drafted = summarise(trials)[1]
    assert drafted.tokens_per_step == pytest.approx(6 / 3)
    assert drafted.acceptance == pytest.approx(3 / 8)
    assert drafted.utilisation == pytest.approx(3 / 12)
    assert drafted.lead == pytest.approx(5.0)
    assert drafted.histogram == {1: 2, 4: 1}


def test_shares_of_time_sum_to_the_wall_time_of_the_blocks(make_trial):
    trial = make_trial(wall_s=0.8, block_wall_s=1.0, encode_s=0.4, verify_s=0.2, control_s=0.05, draft_s=0.15)
    shares = summarise([trial])[0].shares
    parts = (shares.encode, shares.verify, shares.control, shares.draft, shares.wait)
    assert parts == pytest.approx((0.4, 0.2, 0.05, 0.15, 0.2))


def test_latencies_are_quantiles_of_all_repeats_and_memory_is_the_peak(make_trial):
    trials = [make_trial(window=i, wall_s=float(i + 1), peak_bytes=100 - i) for i in range(11)]
    summary = summarise(trials)[0]
    assert summary.latency_s == pytest.approx((6.0, 10.0, 10.9))
    assert summary.peak_bytes == 100
    assert summarise([make_trial()])[0].peak_bytes is None


def test_speedups_of_windows_are_by_window(make_trial):
    plain = [make_trial(window=0, wall_s=2.0), make_trial(window=1, wall_s=3.0)]
    own = [make_trial("as2d", window=1, wall_s=1.5), make_trial("as2d", window=0, wall_s=4.0)]
    assert window_speedups(own, plain) == {1: 2.0, 0: 0.5}
