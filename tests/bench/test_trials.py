import json

import pytest

from as2d_cli.bench.trials import ReplayedChoice, read_results, trial_line
from as2d_cli.domain.errors import RequestError


def write(path, results):
    lines = [trial_line(trial, results.provenance) for trial in results.trials] + list(results.lines())
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_what_is_written_is_read_back_the_same(tmp_path, results):
    results.provenance["command"] = "as2d bench caf\udce9.wav"  # bytes of a name that are no UTF-8
    results.references = {"a.wav": ("what\u2028was said", "en")}
    results.oracle = [ReplayedChoice("oracle", 10.0, 1.2, 1.0, 0.0, None)]
    read = read_results(write(tmp_path / "r.jsonl", results))
    assert read == results


def test_every_row_says_where_it_comes_from(tmp_path, results):
    path = write(tmp_path / "r.jsonl", results)
    for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n"):
        assert json.loads(line)["provenance"] == results.provenance


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"format": 99}', '{"format":1,"type":"window","provenance":{}}']
)
def test_a_line_that_is_no_result_is_named(tmp_path, results, line):
    path = write(tmp_path / "r.jsonl", results)
    count = path.read_text(encoding="utf-8").count("\n")
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RequestError, match=f"line {count + 1}"):
        read_results(path)


def test_a_file_without_rows_or_none_at_all_is_refused(tmp_path, results):
    results.trials = []
    with pytest.raises(RequestError, match="no measured window"):
        read_results(write(tmp_path / "r.jsonl", results))
    with pytest.raises(RequestError, match="cannot be read"):
        read_results(tmp_path / "none.jsonl")


def test_the_lead_is_what_was_ready_when_decoding_began(results):
    assert [trial.lead for trial in results.trials] == [0, 0, 5, 5]
