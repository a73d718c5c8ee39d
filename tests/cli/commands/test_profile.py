"""`as2d profile`: pairs measured on this device, shown as text and as JSON, and forgotten."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from as2d_cli.cli.commands.profile import app
from as2d_cli.cli.exit_codes import exit_code
from as2d_cli.domain.errors import MeasurementError, RegistryError, RequestError
from as2d_cli.profile import store, trust
from as2d_cli.profile.seen import Seen

KEY = {
    "format": "3",
    "device": "toaster, 2 CPUs",
    "mnn": "3.6.1",
    "target": "big/a1",
    "drafter": "small/b2",
    "threads": "2+1",
}


@pytest.fixture
def run(tmp_path, scripted, monkeypatch):
    scripted(target={"encode_ms": 10.0, "step_ms": 1.0})
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))

    def run(*arguments):
        ended = CliRunner().invoke(app, arguments)
        if isinstance(ended.exception, Exception):
            raise ended.exception
        assert ended.exit_code == 0, ended.output
        return ended

    return run


@pytest.fixture
def stored(run, pair_costs):
    """Keep the profile of a pair for two ways to share out threads."""
    costs = (pair_costs(200.0, 2.0, 1.5), pair_costs(200.0, 2.0, 1.2, decode_threads=1))
    return store.store(KEY, costs)


def test_a_pair_is_measured_kept_and_shown(run, monkeypatch):
    for judge in ("load_flaw", "target_flaw", "encoder_flaw", "costs_flaw"):  # this machine may be busy
        monkeypatch.setattr(trust, judge, lambda *_: None)
    measured = run("run", "--threads", "1")
    kept = json.loads(run("show", "--json").stdout)
    assert measured.stdout == f"pair: {kept['budget']['reason']}\n"
    assert kept["key"]["target"].startswith("speaker/")
    assert kept["key"]["drafter"].startswith("hearer/")
    assert kept["key"]["threads"] == "1+1"
    assert kept["costs"][0]["target"]["encode_ms"] >= 10, "what the scripted target takes"


def test_on_a_busy_machine_nothing_is_kept_and_the_command_fails(run, monkeypatch):
    monkeypatch.setattr(trust, "load_flaw", lambda load: "other programs used 1.3 of 2 processors")
    with pytest.raises(MeasurementError, match=r"1\.3 of 2 processors: nothing was stored") as failure:
        run("run", "--pair", "pair", "--threads", "1")
    assert exit_code(failure.value) == 1
    assert not store.profiles_folder().exists()


def test_an_unknown_pair_is_refused_before_anything_is_measured(run):
    with pytest.raises(RegistryError, match="nobody"):
        run("run", "--pair", "nobody")
    assert not store.profiles_folder().exists()


def test_the_text_tells_what_the_profile_holds(run, stored):
    lines = run("show").stdout.splitlines()
    assert lines[0] == "big/a1 + small/b2, threads 2+1"
    assert lines[1].endswith(" on toaster, 2 CPUs, mnn 3.6.1")
    steps = "2: 5.8, 5: 8.5, 8: 11.2, 16: 18.4, 24: 25.6 ms by rows"
    assert lines[2:5] == [
        f"  target: window 600 ms, step {steps}",
        "  rows decided together and one by one: the same tokens",
        "  drafter: window 200 ms, token 2.0 ms",
    ]
    busy = "2: 8.7, 5: 12.8, 8: 16.8, 16: 27.6, 24: 38.4 ms by rows"
    assert lines[5] == (
        f"  both at once, target's passes on 2 threads: window 1.50x the time, step {busy}, drafter 1.50x"
    )
    assert lines[6].startswith("  both at once, target's passes on 1 threads: window 1.20x the time")
    reason = stored.plan(store.Work(windows=store.USUAL_WINDOWS)).reason
    assert lines[7:] == [f"  for 20 windows: {reason}"]


def test_what_was_seen_of_a_drafter_is_shown(run, stored):
    seen = {"transcribe/en": Seen((100.0,) * 7 + (80.0,) * 7, (90,) * 8)}
    store.keep(stored.after(seen))
    assert "  seen at transcribe/en: 80% of 700 draft tokens right\n" in run("show").stdout


@pytest.mark.parametrize(
    ("invariant", "epsilon", "told"),
    [
        (True, 0.0, "the same tokens, logits equal in every bit"),
        (False, 0.00123, "other tokens, logits 0.0012 apart at most"),
    ],
)
def test_the_text_tells_how_exact_the_rows_are(run, pair_costs, invariant, epsilon, told):
    costs = pair_costs(200.0, 2.0)
    target = replace(costs.target, row_invariant=invariant, row_epsilon=epsilon)
    store.store(KEY, (replace(costs, target=target),))
    assert f"one by one: {told}\n" in run("show").stdout


def test_json_is_the_whole_profile(run, stored):
    shown = json.loads(run("show", "--json").stdout)
    assert shown == json.loads(json.dumps(stored.as_dict()))
    reason = stored.plan(store.Work(windows=store.USUAL_WINDOWS)).reason
    assert shown["budget"]["reason"] == reason


def test_names_cannot_steer_a_terminal(run, stored):
    path = store.path_of(KEY)
    path.write_text(path.read_text().replace("big/a1", r"big\u001b[2J"))
    assert "\x1b" not in run("show").stdout


def test_a_damaged_profile_is_named_and_the_others_are_shown(run, stored):
    broken = store.profiles_folder() / "0.json"
    broken.write_text("{")
    shown = run("show")
    assert shown.stderr == f"as2d: {broken}: damaged; it will be measured anew\n"
    assert shown.stdout.startswith("big/a1 + small/b2")


def test_what_is_cleared_is_gone_and_counted(run, stored, pair_costs):
    assert run("clear").stdout == "removed 1 profile\n"
    assert run("clear").stdout == "removed 0 profiles\n"
    shown = run("show", "--json")
    assert (shown.stdout, shown.stderr) == ("", "as2d: no profile yet; as2d profile run measures one\n")


def test_a_profile_that_cannot_be_removed_is_an_error_that_names_it(run):
    blocked = store.profiles_folder() / "a.json"
    blocked.mkdir(parents=True)
    with pytest.raises(RequestError, match=r"a\.json: cannot be removed"):
        run("clear")
