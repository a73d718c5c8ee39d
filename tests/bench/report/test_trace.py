import json

import pytest

from as2d_cli.bench.report.trace import DRAFTER, TARGET, trace_json


def events_of(results):
    return json.loads(trace_json(results))["traceEvents"]


def test_both_processes_have_a_lane_with_a_name(results):
    names = {event["pid"]: event["args"]["name"] for event in events_of(results) if event["ph"] == "M"}
    assert names == {TARGET: "target (as2d-7 hearer)", DRAFTER: "drafter hearer"}


def test_windows_encoding_steps_and_draft_tokens_are_there(results):
    events = [event for event in events_of(results) if event["ph"] != "M"]
    found = [(event["pid"], event["name"]) for event in events]
    for window in (0, 1):
        assert (TARGET, f"window {window}") in found
        assert (DRAFTER, f"draft of window {window}") in found
    assert found.count((TARGET, "encode")) == 2
    assert found.count((TARGET, "step")) == 4
    assert found.count((DRAFTER, "draft token")) == 12
    step = next(event for event in events if event["name"] == "step")
    assert step["args"] == {"rows": 5, "proposed": 4, "accepted": 1, "committed": 2, "available": 5}


def test_times_are_microseconds_from_the_first_event_on_and_steps_lie_in_their_window(results):
    events = [event for event in events_of(results) if event["ph"] != "M"]
    assert min(event["ts"] for event in events) == pytest.approx(0)
    window = next(event for event in events if event["name"] == "window 0")
    assert window["ts"] == pytest.approx(80_000)
    first = next(event for event in events if event["name"] == "step")
    assert first["ts"] == pytest.approx(480_000)
    assert first["dur"] == pytest.approx(12_000)
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_without_drafts_the_target_alone_is_traced(results):
    results.trials = [trial for trial in results.trials if trial.kind == "plain"]
    events = events_of(results)
    assert {event["pid"] for event in events if event["ph"] == "X"} == {TARGET}
