import pytest

from as2d_cli.bench.baselines.serial import SERIAL_MODES
from as2d_cli.bench.modes import PLAIN, Mode, choose_modes, settle
from as2d_cli.domain.errors import RequestError
from as2d_cli.profile.plan import DraftPlan


def names(modes):
    return [mode.label for mode in modes]


def test_by_default_every_method_and_every_cap_is_measured_with_every_drafter():
    modes = names(choose_modes(None, ["tiny", "ctc"]))
    assert modes[0] == "target-only"
    for drafter in ("tiny", "ctc"):
        for name in (*SERIAL_MODES, "async-coupled", "as2d-4", "as2d-7", "as2d-15", "as2d-23"):
            assert f"{name} {drafter}" in modes
    assert modes.count("as2d-auto") == 1
    assert len(set(modes)) == len(modes)


def test_target_only_comes_first_whatever_is_asked_for():
    assert names(choose_modes(["sd-4", "target-only", "sd-4"], ["tiny"])) == ["target-only", "sd-4 tiny"]
    assert choose_modes([], ["tiny"]) == [PLAIN]


def test_as2d_stands_for_all_caps_and_a_number_for_one():
    assert [mode.cap for mode in choose_modes(["as2d"], ["tiny"])[1:]] == [4, 7, 15, 23]
    assert choose_modes(["as2d-15"], ["tiny"])[1] == Mode("as2d-15", "as2d", "tiny", 15)


def test_alignment_is_ablated_only_by_name():
    assert [mode.align for mode in choose_modes(None, ["tiny"]) if mode.align != "hybrid"] == []
    edit, none = choose_modes(["as2d-edit", "as2d-none"], ["tiny"])[1:]
    assert (edit.kind, edit.cap, edit.align, none.align) == ("as2d", 23, "edit", "none")


def test_an_unknown_mode_is_refused_with_the_nearest_one():
    with pytest.raises(RequestError, match="sd-5") as caught:
        choose_modes(["sd-5"], ["tiny"])
    assert "sd-4" in caught.value.hint


def test_auto_becomes_what_was_chosen_and_keeps_its_name():
    modes = choose_modes(["as2d-auto", "sd-2"], ["tiny"])
    drafting, plain = (
        settle(modes, budget)[1] for budget in (DraftPlan(True, "", "tiny", 7, 1), DraftPlan(False, ""))
    )
    assert (drafting.kind, drafting.cap, drafting.label) == ("as2d", 7, "as2d-auto tiny")
    assert drafting.decode_threads == 1
    assert (plain.kind, plain.label) == ("plain", "as2d-auto")


def test_windows_are_decoded_alone_in_one_mode_for_the_replay():
    (mode,) = [mode for mode in choose_modes(None, ["tiny"]) if mode.alone]
    assert (mode.kind, mode.cap) == ("as2d", 23)
