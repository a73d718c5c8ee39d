from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.bench.run.clips import BenchWindow, Clip
from as2d_cli.bench.run.hindsight import (
    NO_DRAFT,
    Recorded,
    RecordedDraft,
    record_drafts,
    recorded_windows,
    verdicts,
)
from as2d_cli.bench.trials import TrialStep
from as2d_cli.decoding.protocols import TargetSpec
from as2d_cli.decoding.stream import DraftState
from as2d_cli.domain.errors import ModelError, PluginError
from as2d_cli.domain.types import FeatureSpec, Request, Window
from as2d_cli.engine.measure import ROWS, DraftCosts, PairCosts, TargetCosts
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource
from as2d_cli.profile.plan import DraftPlan
from as2d_scripted import Script, ScriptedTarget

END = 0
SPEC = TargetSpec(FeatureSpec(), END, 100, ("en",))
TEXT = (*range(1, 41), END)
STAIRS = {rows: 10.0 + 0.1 * rows for rows in ROWS}
TARGET = TargetCosts(100.0, STAIRS, STAIRS, row_invariant=True, peak_bytes=1)
COSTS = (PairCosts(TARGET, TARGET, DraftCosts(10.0, 1.0, 1), DraftCosts(10.0, 1.0, 1), decode_threads=2),)
NONE = DraftPlan(False, "")
GOOD = RecordedDraft(TEXT, tuple(20.0 + index for index in range(len(TEXT))), DraftState.ENDED)


@pytest.fixture
def plain_trial(make_trial):
    def make(window=0, **given):
        steps = tuple(TrialStep(1, 0, 0, 0, 100 + 11 * i, 10.1) for i in range(len(TEXT)))
        return make_trial(
            window=window, tokens=TEXT, steps=steps, encode_s=0.1, control_s=0.041, wall_s=0.555, **given
        )

    return make


def test_a_good_draft_wins_in_the_replay_and_the_oracle_is_never_slower(plain_trial):
    trials = [plain_trial(0), plain_trial(1)]
    found = verdicts(
        trials, {"hearer": Recorded([GOOD, NO_DRAFT], COSTS, 1)}, SPEC, 2, DraftPlan(True, "", "hearer", 23)
    )
    named = {choice.choice: choice for choice in found}
    assert list(named)[:3] == [
        "as2d auto: as2d-23 hearer",
        "oracle, per window",
        "best static: as2d-23 hearer",
    ]
    assert named["target-only"].speedup == 1.0
    assert named["as2d-23 hearer"].speedup > named["as2d-4 hearer"].speedup > 1.0
    assert named["oracle, per window"].slower == 0.0
    assert named["oracle, per window"].of_oracle == 1.0
    assert named["as2d auto: as2d-23 hearer"].replay_ms == named["as2d-23 hearer"].replay_ms


def test_the_replay_of_target_only_is_what_the_run_took_where_the_costs_are_true(plain_trial):
    found = verdicts([plain_trial()], {"hearer": Recorded([GOOD], COSTS, 1)}, SPEC, 2, NONE)
    target_only = next(choice for choice in found if choice.choice == "target-only")
    # 100 ms encoding, 41 passes of 10.1 ms and 1 ms of control after each
    assert target_only.replay_ms == pytest.approx(100 + 41 * 11.1)
    assert target_only.native_ms == pytest.approx(555.0)
    assert found[0].choice == "as2d auto: target-only"
    assert found[0].speedup == 1.0


def test_the_oracle_also_knows_the_other_ways_to_share_out_threads(plain_trial):
    shared = replace(COSTS[0], target=TARGET.scaled(0.5), target_busy=TARGET.scaled(0.5), decode_threads=1)
    auto = DraftPlan(True, "", "hearer", 23, decode_threads=1)
    recorded = {"hearer": Recorded([GOOD], (*COSTS, shared), 1)}
    named = {choice.choice: choice for choice in verdicts([plain_trial()], recorded, SPEC, 2, auto)}
    assert named["as2d-23 hearer, passes on 1"].speedup > named["as2d-23 hearer"].speedup
    assert named["as2d auto: as2d-23 hearer, passes on 1"].of_oracle == 1.0


def test_only_windows_from_a_standing_start_are_compared_with_the_replay(plain_trial, make_trial):
    trials = [plain_trial(0), plain_trial(1)]
    given = {"tokens": TEXT, "cap": 23}
    trials += [make_trial("as2d-23 hearer", window=w, wall_s=0.1, **given) for w in (0, 1)]
    trials += [make_trial("as2d-23-alone hearer", window=w, wall_s=0.2, alone=True, **given) for w in (0, 1)]
    recorded = {"hearer": Recorded([GOOD, GOOD], COSTS, 1)}
    named = {choice.choice: choice for choice in verdicts(trials, recorded, SPEC, 2, NONE)}
    assert named["as2d-23 hearer"].native_ms == pytest.approx(400.0)
    assert named["as2d-4 hearer"].native_ms is None
    incomplete = {choice.choice: choice for choice in verdicts(trials[:-1], recorded, SPEC, 2, NONE)}
    assert incomplete["as2d-23 hearer"].native_ms is None


def test_encoding_counts_with_its_least_time_over_the_repeats(plain_trial):
    trials = [plain_trial(), plain_trial(repeat=1)]
    trials[1] = trials[1].__class__(
        **{name: getattr(trials[1], name) for name in trials[1].__slots__} | {"encode_s": 0.08}
    )
    (window,) = recorded_windows(trials, None, SPEC)
    assert window.encode_ms == pytest.approx(80.0)
    assert (window.tokens, window.draft, window.max_tokens) == (TEXT, (), 100)


def scripted(name, plugin="scripted", **options):
    return ModelRef(
        ModelEntry(name, plugin, "any", NoSource(), options={"seed": 1, "words": 12} | options), None, 1
    )


def bench_windows(count):
    noise = np.random.default_rng(7)
    clip = Clip(Path("a.wav"))
    parts = [Window(index, 0, noise.normal(0, 0.1, 16000).astype(np.float32)) for index in range(count)]
    return [BenchWindow(part.index, 0, clip, part, None) for part in parts]


def test_drafts_are_recorded_whole_with_the_drafters_own_pace():
    target = ScriptedTarget(Script(seed=1, words=12))
    windows = bench_windows(2)
    drafter = scripted("hearer", start_delay_ms=30.0, delay_ms=2.0)
    drafts = record_drafts(scripted("speaker"), drafter, target.spec, windows, {0: "en", 1: "en"})
    for window, draft in zip(windows, drafts, strict=True):
        words = target.script.read(log_mel(window.window.samples, FeatureSpec()), Request())
        text = target.tokenizer.encode("".join(f" {word}" for word in words))
        assert draft.tokens == (*text, target.spec.end_id)
        assert draft.final is DraftState.ENDED
        assert draft.published_ms[0] >= 30.0
        assert draft.published_ms[-1] - draft.published_ms[0] >= 2.0 * (len(text) - 1)


def test_a_draft_that_fails_is_recorded_as_far_as_it_went():
    drafts = record_drafts(
        scripted("speaker"), scripted("hearer", fail_at=4), ScriptedTarget().spec, bench_windows(1), {0: "en"}
    )
    assert drafts[0].final is DraftState.FAILED
    assert 0 < len(drafts[0].tokens) <= 4


@pytest.mark.parametrize(
    ("drafter", "error"),
    [(scripted("hearer", exit_at=2), ModelError), (scripted("hearer", plugin="none"), PluginError)],
)
def test_a_drafter_that_dies_or_does_not_load_cannot_be_recorded(drafter, error):
    with pytest.raises(error):
        record_drafts(scripted("speaker"), drafter, ScriptedTarget().spec, bench_windows(1), {0: "en"})
