"""The decoders of blocks with real processes and scripted models."""

import multiprocessing
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.bench.baselines.serial import SERIAL_MODES
from as2d_cli.bench.modes import PLAIN, Mode, choose_modes
from as2d_cli.bench.run import decoders
from as2d_cli.bench.run.clips import BenchWindow, Clip
from as2d_cli.bench.run.decoders import BaselineDecoder, EngineDecoder, summed_peak_bytes
from as2d_cli.domain.errors import As2dError, ModelError, PluginError
from as2d_cli.domain.types import Window
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import DecodeSettings, ModelRef
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource

SCRIPT = {"seed": 1, "words": 30}
COUPLED = Mode("async-coupled", "coupled", "hearer")


def scripted(name, options, plugin="scripted"):
    return ModelRef(ModelEntry(name, plugin, "any", NoSource(), options=SCRIPT | options), None, 1)


def tasks(count):
    noise = np.random.default_rng(7)
    clip = Clip(Path("a.wav"))
    return [
        BenchWindow(
            index, 0, clip, Window(index, 0, noise.normal(0, 0.1, 16000).astype(np.float32)), None
        ).task()
        for index in range(count)
    ]


def tokens(run):
    return [result.tokens for result in run.results]


@pytest.fixture(scope="module")
def plain():
    with Engine(EngineSettings(scripted("speaker", {}), None)) as engine:
        run = EngineDecoder(engine, DecodeSettings()).decode(PLAIN, tasks(3))
    assert all(step.proposed == 0 for result in run.results for step in result.trace.steps)
    return tokens(run)


@pytest.fixture(scope="module")
def pair():
    target = scripted("speaker", {"encode_ms": 40.0, "step_ms": 4.0})
    with BaselineDecoder(
        target, scripted("hearer", {"error_rate": 0.15, "delay_ms": 0.5}), DecodeSettings(), coupled=True
    ) as decoder:
        yield decoder


@pytest.mark.parametrize("name", SERIAL_MODES)
def test_serial_modes_give_the_targets_text_with_fewer_passes(plain, pair, name):
    run = pair.decode(Mode(name, "serial", "hearer"), tasks(3))
    assert tokens(run) == plain
    for result in run.results:
        stats = result.stats
        assert stats.steps < stats.tokens
        assert stats.drafted >= stats.accepted > 0
        assert result.trace.waited_s > 0
        assert stats.encode_s + stats.verify_s + result.trace.waited_s < stats.wall_s <= run.wall_s
        assert stats.control_s > 0


def test_async_coupled_gives_the_targets_text_from_drafts_of_another_process(plain, pair):
    run = pair.decode(COUPLED, tasks(3))
    assert tokens(run) == plain
    assert sum(result.stats.accepted for result in run.results) > 0
    assert sum(result.stats.drafted for result in run.results) > 0
    assert all(result.trace.waited_s == 0 for result in run.results)
    assert len(pair.process_ids(COUPLED)) == 2
    assert len(pair.process_ids(Mode("sd-2", "serial", "hearer"))) == 1


def test_a_follower_that_is_late_costs_only_speed(plain):
    slow = scripted("hearer", {"start_delay_ms": 150.0})
    with BaselineDecoder(scripted("speaker", {}), slow, DecodeSettings(), coupled=True) as decoder:
        assert tokens(decoder.decode(COUPLED, tasks(3))) == plain
        assert tokens(decoder.decode(COUPLED, tasks(3))) == plain


def test_drafts_change_no_token_in_any_as2d_mode_and_alone_they_have_no_head_start(plain):
    target = scripted("speaker", {"encode_ms": 60.0, "step_ms": 3.0})
    modes = choose_modes(["as2d-4", "as2d-23", "as2d-alone"], ["hearer"])
    with Engine(EngineSettings(target, scripted("hearer", {"error_rate": 0.1}))) as engine:
        decoder = EngineDecoder(engine, DecodeSettings())
        runs = {mode.name: decoder.decode(mode, tasks(3)) for mode in modes}
        ids = {mode.kind: decoder.process_ids(mode) for mode in modes}
    assert all(tokens(run) == plain for run in runs.values())
    assert max(step.proposed for result in runs["as2d-4"].results for step in result.trace.steps) == 4
    assert runs["as2d-23"].results[-1].trace.draft_began_s < runs["as2d-23"].results[-1].trace.began_s
    for before, after in pairwise(runs["as2d-23-alone"].results):
        assert after.trace.draft_began_s > before.trace.began_s + before.stats.wall_s
    assert (len(ids["plain"]), len(ids["as2d"])) == (1, 2)


@pytest.mark.parametrize(
    ("drafter", "message"), [({"fail_at": 3}, "fails before token 3"), ({"exit_at": 3}, "ended with code 70")]
)
@pytest.mark.parametrize("mode", [Mode("sd-4", "serial", "hearer"), COUPLED], ids=lambda mode: mode.name)
def test_a_drafter_that_fails_fails_its_baseline(drafter, message, mode):
    target = scripted("speaker", {"encode_ms": 100.0, "step_ms": 2.0})
    with (
        BaselineDecoder(target, scripted("hearer", drafter), DecodeSettings(), coupled=True) as decoder,
        pytest.raises(As2dError, match=message),
    ):
        decoder.decode(mode, tasks(2))


def test_a_drafter_that_hangs_fails_its_baseline(monkeypatch):
    hanging = scripted("hearer", {"start_delay_ms": 3_600_000.0})
    with BaselineDecoder(scripted("speaker", {}), hanging, DecodeSettings(), coupled=False) as decoder:
        monkeypatch.setattr(decoders, "PATIENCE_S", 1.0)  # not before: to load takes its time
        with pytest.raises(ModelError, match="a baseline did not answer for 1 s"):
            decoder.decode(Mode("sd-4", "serial", "hearer"), tasks(1))


def test_what_cannot_be_loaded_says_why_and_leaves_no_process():
    before = set(multiprocessing.active_children())
    with (
        pytest.raises(PluginError, match="there is no plugin called 'none'"),
        BaselineDecoder(
            scripted("speaker", {}), scripted("hearer", {}, "none"), DecodeSettings(), coupled=True
        ),
    ):
        pass
    assert set(multiprocessing.active_children()) == before


def test_a_drafter_that_no_window_fits_is_refused_before_any_is_cut():
    short = scripted("hearer", {"frames": 1000})
    with (
        pytest.raises(PluginError, match="'hearer' cannot be used: its features are 80 times 1000, which"),
        BaselineDecoder(scripted("speaker", {}), short, DecodeSettings(), coupled=True),
    ):
        pass


def test_memory_is_that_of_all_processes_or_unknown():
    own = summed_peak_bytes([os.getpid()])
    if Path("/proc/self/status").exists():
        assert 10e6 < own < 100e9
        assert summed_peak_bytes([os.getpid(), os.getpid()]) == 2 * own
    else:
        assert own is None
    assert summed_peak_bytes([2**30]) is None


def test_a_process_that_is_gone_is_told():
    target = scripted("speaker", {"exit_at": 5})
    with (
        BaselineDecoder(target, scripted("hearer", {}), DecodeSettings(), coupled=False) as decoder,
        pytest.raises(ModelError, match="code 70"),
    ):
        decoder.decode(Mode("sd-2", "serial", "hearer"), tasks(1))
