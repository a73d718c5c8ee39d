"""Profiles: kept for one device and pair, and measured anew when they cannot be trusted."""

import json
from dataclasses import replace

import pytest

from as2d_cli.engine.messages import ModelRef
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource
from as2d_cli.profile import store


@pytest.fixture
def key(tmp_path):
    def model(name, threads):
        return ModelRef(ModelEntry(name, "whisper", "any", NoSource()), tmp_path / "a1b2", threads)

    return store.profile_key(model("speaker", 2), model("hearer", 1))


def test_what_is_stored_is_loaded_again(pair_costs, key):
    stored = store.store(key, (pair_costs(200.0, 2.0, 1.5),))
    assert store.load(key) == stored
    assert stored.costs[0].target_busy.encode_ms == 900.0


def test_the_key_names_all_that_costs_depend_on(key):
    assert set(key) == {"format", "device", "mnn", "openvino", "target", "drafter", "threads"}
    assert key["threads"] == "2+1"
    assert key["target"] == "speaker/a1b2"


@pytest.mark.parametrize("field", ["device", "mnn", "target", "drafter", "threads"])
def test_a_profile_of_something_else_is_not_used(pair_costs, key, field):
    store.store(key, (pair_costs(200.0, 2.0),))
    assert store.load(key | {field: "other"}) is None


def test_a_foreign_profile_under_this_name_is_not_used(pair_costs, key):
    store.store(key, (pair_costs(200.0, 2.0),))
    path = store.path_of(key)
    path.write_text(path.read_text().replace('"mnn": "3', '"mnn": "9'))
    notes = []
    assert store.load(key, notes.append) is None
    assert "measured anew" in notes[0]


def test_where_there_is_no_profile_there_is_nothing_to_tell(key):
    notes = []
    assert store.load(key, notes.append) is None
    assert notes == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"key": {}}',
        '{"key": {}, "measured_at": 0, "costs": 3}',
        '{"key": {}, "measured_at": 0, "costs": []}',
        "[" * 100_000,
    ],
)
def test_a_damaged_profile_is_none(pair_costs, key, content):
    store.store(key, (pair_costs(200.0, 2.0),))
    store.path_of(key).write_text(content)
    notes = []
    assert store.load(key, notes.append) is None
    assert "damaged" in notes[0]
    assert str(store.path_of(key)) in notes[0]


@pytest.mark.parametrize("ms", [0, -1, float("nan"), "fast"])
def test_costs_that_no_machine_has_are_none(pair_costs, key, ms):
    store.store(key, (pair_costs(200.0, 2.0),))
    path = store.path_of(key)
    raw = json.loads(path.read_text())
    raw["costs"][0]["target"]["short_ms"]["8"] = ms
    path.write_text(json.dumps(raw))
    assert store.load(key) is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("measured_at",), 1e300),
        (("measured_at",), "yesterday"),
        (("key",), {}),
        (("costs", 0, "target", "peak_bytes"), None),
        (("costs", 0, "drafter", "peak_bytes"), "much"),
        (("costs", 0, "target", "row_invariant"), "no"),
        (("costs", 0, "target", "spread"), "wide"),
        (("costs", 0, "target", "row_epsilon"), -1.0),
        (("costs", 0, "target", "row_epsilon"), "small"),
        (("costs", 0, "target", "short_ms"), {}),
        (("costs", 0, "target_busy", "long_ms"), {"1": 5.0}),
        (("costs", 0, "decode_threads"), 1e300),
        (("forecasts",), None),
        (("forecasts",), {}),
        (("forecasts", ""), 3),
        (("forecasts", "", "is_exact"), "yes"),
        (("forecasts", "", "plain_ms"), []),
        (("forecasts", "", "plain_ms", 0), -1.0),
        (("forecasts", "", "ways"), []),
        (("forecasts", "", "ways", 0, "cap"), 10**6),
        (("forecasts", "", "ways", 0, "decode_threads"), 64),
        (("forecasts", "", "ways", 0, "first"), [1.0]),
        (("forecasts", "", "ways", 0, "later", 0), "much"),
        (("forecasts", "", "plain"), {"encode_ms": 1.0, "token_ms": 0.0}),
        (("forecasts", "", "plain"), None),
        (("seen",), 3),
        (("seen",), {"transcribe/en": {"counts": [1.0] * 14, "lengths": [], "last_at": -1.0}}),
        (("seen",), {"transcribe/en": {"counts": [1.0] * 14, "lengths": []}}),
        (("seen",), {"transcribe/en": 3}),
        (("seen",), {"transcribe/en": {"counts": [1.0] * 7 + [2.0] * 7, "lengths": [], "last_at": 1.0}}),
        (("seen",), {"transcribe/en": {"counts": ["many"] * 14, "lengths": [], "last_at": 1.0}}),
        (("seen",), {"transcribe/en": {"counts": [1.0] * 14, "lengths": [0.5], "last_at": 1.0}}),
        (
            ("seen",),
            {str(kind): {"counts": [1.0] * 14, "lengths": [], "last_at": 1.0} for kind in range(1000)},
        ),
        (("costs", 0, "decode_threads"), 10**9),
        (("costs", 0, "decode_threads"), 0.5),
    ],
)
def test_whatever_is_read_can_be_shown_and_chosen_by(pair_costs, key, place, value):
    store.store(key, (pair_costs(200.0, 2.0),))
    path = store.path_of(key)
    raw = json.loads(path.read_text())
    inner = raw
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    path.write_text(json.dumps(raw))
    with pytest.raises(store.DAMAGE):
        store.read(path)


def test_a_profile_that_was_disturbed_is_dropped(pair_costs, key):
    costs = pair_costs(200.0, 2.0)
    disturbed = replace(costs.target, short_ms=costs.target.short_ms | {1: 73.0, 5: 69.0})
    store.store(key, (replace(costs, target=disturbed),))
    notes = []
    assert store.load(key, notes.append) is None
    assert "the profile was disturbed (a pass of 1 row took 39.0 ms, one of 2 rows 5.8 ms)" in notes[0]
    assert not store.path_of(key).exists()


def test_a_profile_without_the_spread_of_repeats_is_as_good(pair_costs, key):
    stored = store.store(key, (pair_costs(200.0, 2.0),))
    path = store.path_of(key)
    raw = json.loads(path.read_text())
    for model in ("target", "target_busy"):
        assert raw["costs"][0][model].pop("spread") == 1.0
    path.write_text(json.dumps(raw))
    assert store.load(key) == stored
