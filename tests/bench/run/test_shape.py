"""The projection for models that are not at hand: recorded speech on costs of their shape."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.bench.acceptance import recorded_acceptance
from as2d_cli.bench.projection import ShapeCosts
from as2d_cli.bench.report.shape_report import record, report
from as2d_cli.bench.run import shape
from as2d_cli.bench.run.shape import project
from as2d_cli.cli.app import app
from as2d_cli.cli.commands.bench_shape import bench_shape
from as2d_cli.engine.measure import ROWS, DraftCosts, PairCosts, TargetCosts
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models import weights
from as2d_cli.models.registry import ModelEntry, load_registry
from as2d_cli.models.sources import NoSource
from as2d_cli.profile import trust

REGISTRY = """
schema = 1
default_pair = "tiny-shape"
pairs.tiny-shape = { target = "tiny-shape", drafter = "whisper-tiny.en" }
[models.tiny-shape]
plugin = "scripted"
role = "any"
shape_of = "tiny"
source = { kind = "none" }
options.encode_ms = 4
options.step_ms = 1
[models.tinier-shape]
plugin = "scripted"
role = "drafter"
shape_of = "tinier"
source = { kind = "none" }
"""


def measured(threads=2, encode_ms=1000.0, step_ms=50.0, row_ms=2.0, token_ms=5.0):
    steps = {rows: step_ms + row_ms * (rows - 1) for rows in ROWS}
    target = TargetCosts(encode_ms, steps, steps, row_invariant=True, peak_bytes=2 * 10**9)
    drafter = DraftCosts(300.0, token_ms, 10**9)
    return ShapeCosts(PairCosts(target, target, drafter, drafter, threads), 0.25, 0.25, 1.0, 2.0)


def test_recorded_speech_is_of_full_windows_with_drafts_mostly_right():
    acceptance = recorded_acceptance()
    assert len(acceptance.windows) >= 15
    for window in acceptance.windows:
        assert 20 <= window.audio_s <= 30
        assert window.tokens[-1] == acceptance.end_id
        assert max(window.tokens + window.draft) < acceptance.vocab_size
    known = sum(len(set(window.tokens) & set(window.draft)) for window in acceptance.windows)
    assert known > 0.8 * sum(len(set(window.tokens)) for window in acceptance.windows)


def test_a_slow_decoder_gains_what_its_encoder_leaves():
    projection = project([measured()], recorded_acceptance())
    assert projection.ways[0].speedup == 1
    assert projection.chosen.cap > 0
    assert projection.chosen.slower == 0
    assert 2 < projection.chosen.speedup < projection.chosen.decode_speedup
    assert projection.chosen.speedup < 1 / projection.opening
    assert projection.chosen.tokens_per_step > 3


def test_where_verifying_costs_as_much_as_decoding_nothing_is_drafted():
    projection = project([measured(row_ms=50.0)], recorded_acceptance())
    assert projection.chosen == projection.ways[0]


def test_fewer_threads_are_chosen_if_they_are_faster_than_target_only_on_all():
    slow_together, apart = measured(row_ms=40.0), measured(threads=1, step_ms=55.0)
    projection = project([slow_together, apart], recorded_acceptance())
    assert projection.chosen.threads == 1
    assert projection.chosen.speedup > 1
    useless = measured(threads=1, step_ms=400.0)
    assert project([slow_together, useless], recorded_acceptance()).chosen.cap == 0


def test_the_report_says_what_it_is_and_its_record_holds_all_of_it(tmp_path):
    models = []
    for name in ("big-shape", "small-shape"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_bytes(bytes(2 * 10**8))
        entry = ModelEntry(name, "scripted", "any", NoSource(), shape_of=name.removesuffix("-shape"))
        models.append(ModelRef(entry, tmp_path / name, 2))
    origin = {
        "as2d": "1",
        "commit": None,
        "runtimes": {"Runtime": "3"},
        "utc": "now",
        "device": "d",
        "load": 0,
        "command": "c",
    }
    costs, acceptance = [measured()], recorded_acceptance()
    projection = project(costs, acceptance)
    text = "\n".join(report(models, costs, projection, acceptance, origin))
    assert "PROJECTION: the costs are of random weights in the shape of big" in text
    assert "as2d 1, Runtime 3, now" in text
    assert "measured on 25% of its audio" in text
    assert "big-shape needs 0.2 GB on disk, 2.0 GB of memory" in text
    assert f"the profile's choice: as2d-{projection.chosen.cap}, target on 2" in text
    kept = json.loads(record(costs, projection, [], origin))
    assert kept["projection"]["chosen"]["cap"] == projection.chosen.cap
    assert kept["measured"][0]["costs"]["target"]["encode_ms"] == 1000.0


def test_an_unknown_shape_and_files_beside_a_shape_are_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        app(["bench", "--shape", "nothing"], prog_name="as2d")
    assert stopped.value.code == 2
    assert "choose one of: qwen3-asr-1.7b, qwen2.5-omni-7b" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        app(["bench", "--shape", "qwen3-asr-1.7b", "speech.wav"], prog_name="as2d")
    assert "takes no files" in capsys.readouterr().err


def test_a_shape_is_made_measured_and_removed_unless_it_was_there_before(tmp_path, monkeypatch, capsys):
    (tmp_path / "models.toml").write_text(REGISTRY)
    monkeypatch.setenv("AS2D_MODELS", str(tmp_path / "models.toml"))
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(trust, "load_flaw", lambda load: "others are at work")
    target, drafter = (load_registry().model(name) for name in ("tiny-shape", "tinier-shape"))
    kept = weights.ensure(target)
    bench_shape("tiny", ["tinier-shape"], 1, tmp_path / "kept.jsonl", native=False)
    assert weights.find(target) == kept
    assert weights.find(drafter) is None
    told = capsys.readouterr()
    assert "PROJECTION: the costs are of random weights in the shape of tiny," in told.out
    assert "target tiny-shape, drafter tinier-shape (1 threads)" in told.out
    assert "figures not to be compared: others are at work" in told.err
    kept = json.loads((tmp_path / "kept.jsonl").read_text())
    assert kept["measured"][0]["costs"]["target"]["encode_ms"] >= 4
    assert kept["projection"]["windows"] >= 15


@pytest.mark.parametrize(("took_s", "threads"), [(3.0, [2, 1]), (160.0, [2])])
def test_a_target_is_measured_with_fewer_threads_unless_that_takes_long(monkeypatch, took_s, threads):
    def measure(target, drafter, note):
        return replace(measured(target.threads), measure_s=took_s)

    monkeypatch.setattr(shape, "_measure", measure)
    model = ModelRef(ModelEntry("big-shape", "scripted", "any", NoSource()), Path("big"), 2)
    notes = []
    costs = shape.measure_shape(model, model, notes.append)
    assert [own.costs.decode_threads for own in costs] == threads
    assert [note.partition(":")[0] for note in notes] == ["not measured, for that took 161 s"][
        len(threads) - 1 :
    ]


def test_costs_are_scaled_nowhere_but_in_the_opening_of_a_window():
    acceptance = recorded_acceptance()
    once, twice = measured(), measured(encode_ms=2000.0)
    one, two = (project([own], acceptance).ways[0] for own in (once, twice))
    mean_s = sum(window.audio_s for window in acceptance.windows) / len(acceptance.windows)
    assert two.window_s - one.window_s == pytest.approx(mean_s / 30)
    assert replace(one, window_s=two.window_s) == two
