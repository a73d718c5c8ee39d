import pytest

from as2d_cli.bench.run import costs as module
from as2d_cli.bench.run.costs import choose, decode_settings, known_costs, staircase
from as2d_cli.domain.errors import ModelError
from as2d_cli.engine.measure import ROWS, DraftCosts, PairCosts, TargetCosts
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource
from as2d_cli.profile import store
from as2d_cli.profile.plan import CAPS, DraftPlan, forecast


def pair_costs(draft_ms):
    stairs = {rows: 10.0 + 0.1 * rows for rows in ROWS}
    target = TargetCosts(100.0, stairs, stairs, row_invariant=True, peak_bytes=1)
    drafter = DraftCosts(10 * draft_ms, draft_ms, 1)
    return (PairCosts(target, target, drafter, drafter, decode_threads=1),)


def model(name, tmp_path):
    return ModelRef(ModelEntry(name, "scripted", "any", NoSource()), tmp_path / name, 1)


class Bench:
    """Stands for an engine that has been measured."""

    def __init__(self, *flaws):
        self._flaws = flaws

    def measure(self, on_flaw):
        for flaw in self._flaws:
            on_flaw(flaw)
        return pair_costs(1.0)

    def share_threads(self, decode_threads):
        """Its target has all threads again."""


class Broken:
    """Stands for an engine that has lost its drafter."""

    def measure(self, on_flaw):
        raise ModelError("there is no drafter to measure")


@pytest.fixture(autouse=True)
def _measured_by_themselves(monkeypatch):
    monkeypatch.setattr(module, "measure_pair", lambda engine, on_flaw: engine.measure(on_flaw))


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    return model("speaker", tmp_path), model("hearer", tmp_path)


def test_of_all_drafters_the_one_that_gains_most_is_chosen():
    notes = []
    chosen = choose(
        {"slow": pair_costs(50.0), "quick": pair_costs(1.0), "fair": pair_costs(20.0)}, notes.append
    )
    assert chosen.drafter == "quick"
    assert chosen.cap in CAPS
    assert chosen.saving > 0.3
    assert len(notes) == 3


def test_where_no_draft_pays_none_is_chosen():
    slow = choose({"slow": pair_costs(50.0)}, lambda text: None)
    assert (slow.drafting, slow.drafter, slow.cap) == (False, None, 0)
    assert choose({}, lambda text: None) == DraftPlan(False, "nothing is known of this device")


def test_a_profile_of_a_quiet_machine_is_kept_and_used_again(models):
    measured = known_costs(*models, Bench(), lambda text: None)
    assert measured.costs == pair_costs(1.0)
    assert known_costs(*models, None, lambda text: None) == store.load(store.profile_key(*models))


def test_what_a_busy_machine_gives_is_used_with_a_warning_and_not_kept(models):
    notes = []
    assert known_costs(*models, Bench("others were busy"), notes.append).costs == pair_costs(1.0)
    assert "doubtful (others were busy)" in notes[0]
    assert known_costs(*models, None, notes.append) is None


def test_a_pair_that_cannot_be_measured_has_no_costs(models):
    notes = []
    assert known_costs(*models, Broken(), notes.append) is None
    assert notes == ["hearer could not be measured: there is no drafter to measure"]


def test_known_costs_reach_the_decoder_and_the_plot(models):
    (costs,) = splits = pair_costs(1.0)
    settings = decode_settings(splits)
    assert (settings.idle_ms, settings.busy_ms) == (costs.target.step_ms(), costs.target_busy.step_ms())
    assert decode_settings(None).idle_ms == {}
    shown = staircase("hearer", store.Profile({}, 0.0, 1.0, splits, {"": forecast(splits)}))
    assert (shown.idle_ms, shown.measured_at) == (costs.target.step_ms(), "1970-01-01T00:00:00Z")
