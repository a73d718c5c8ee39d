import sys

from as2d_cli.bench.report.tables import report
from as2d_cli.bench.trials import ReplayedChoice


def test_the_report_shows_every_mode_in_every_table(results):
    lines = list(report(results))
    assert sum(line.startswith("as2d-7 hearer ") for line in lines) == 4
    assert sum(line.startswith("target-only ") for line in lines) == 4
    assert "all modes gave the same tokens in every window" in lines
    assert "note: a <note>" in lines


def test_tables_hold_the_pooled_figures(results):
    line = next(line for line in report(results) if line.startswith("as2d-7 hearer "))
    assert line.split()[2:6] == ["2.00x", "2.00-2.00", "60.0", "6.0"]


def test_a_different_text_is_told_loudly(results, make_trial):
    results.trials.append(make_trial("sd-2 hearer", tokens=(1,)))
    assert any(line.startswith("DIFFERENT TEXT: sd-2 hearer") for line in report(results))


def test_the_replay_is_shown_beside_the_run(results):
    results.oracle = [ReplayedChoice("as2d-7 hearer", 1700.0, 1.5, 0.99, 0.1, 2000.0)]
    text = "\n".join(report(results))
    assert "-15.0%" in text
    assert "99.00%" in text
    assert "1:5.0 8:10.0" in text


def test_what_was_predicted_of_auto_stands_beside_what_came(results, make_trial):
    results.trials.append(make_trial("as2d-auto hearer", block_wall_s=1.0))
    text = "\n".join(report(results))
    assert "as2d-auto chose hearer, at most 7 draft tokens per step: predicted 1.33x, measured 2.00x" in text


def test_word_errors_are_left_out_with_a_word_where_packages_are_missing(results, monkeypatch):
    results.references = {"a.wav": ("a text", "en")}
    monkeypatch.setitem(sys.modules, "jiwer", None)
    assert any("need the packages jiwer" in line for line in report(results))


def test_word_errors_are_shown_where_texts_are_known(results):
    results.references = {"a.wav": ("a text, a test", "en")}
    line = next(line for line in report(results) if "word error rate" in line)
    assert "25.00% over 1 files" in line
    assert "whisper-normalizer" in line
