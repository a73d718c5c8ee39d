import pytest

from as2d_cli.decoding.inner import DraftView, Earlier
from as2d_cli.domain.errors import PluginError
from as2d_cli.domain.types import Request
from as2d_cli.models import loader
from as2d_cli.models.registry import ModelEntry, load_registry
from as2d_cli.models.sources import NoSource
from as2d_lookup.drafter import MAX_TOKENS, LookupDrafter
from as2d_scripted import ScriptedTokenizer

TOKENIZER = ScriptedTokenizer()


def draft(*earlier, place=(9, 0), **request):
    view = DraftView(*place, Request(**request), None, [Earlier(*one) for one in earlier])
    return LookupDrafter(TOKENIZER).draft(view)


def test_without_anything_said_before_there_is_no_draft():
    assert draft() == []


def test_the_prompt_is_drafted_after_what_was_said():
    assert draft((0, 1, (7, 8)), prompt=" so ") == [7, 8, *TOKENIZER.encode(" so")]


def test_a_question_and_its_passage_are_drafted():
    assert draft(task="ask", question="who?", passage="it is") == TOKENIZER.encode(" who? it is")


def test_beginnings_of_other_files_come_first_and_the_commonest_of_them_leads():
    rare, common = (1, *range(20, 30)), (2, *range(30, 40))
    found = draft((0, 0, (*common, 3)), (0, 1, (6,)), (1, 0, (*common, 4)), (2, 0, rare), (9, 0, (5,)))
    assert found == [*common, 4, *common, 3, *rare, 5, 6]


def test_what_is_said_often_is_drafted_once():
    assert draft((0, 0, (1, 2)), (1, 0, (1, 2)), (1, 1, (3,))) == [1, 2, 3]


def test_a_long_past_is_cut_at_its_far_end():
    earlier = [(0, index, (index,) * 100) for index in range(200)]
    found = draft(*earlier, place=(0, 200), prompt="so")
    assert found[0] == 199
    assert 0.9 * MAX_TOKENS < len(found) <= MAX_TOKENS


def test_the_shipped_entry_loads_and_runs_inside():
    entry = load_registry().model("lookup")
    assert loader.drafts_inside(entry)
    drafter = loader.load_inner_drafter(entry, None, 1, TOKENIZER)
    assert drafter.passages
    assert not entry.fits("target")


def test_the_smallest_reader_looks_up_unless_another_drafter_is_named():
    reader, drafter = load_registry().choose("smollm2-135m", None, "ask")
    assert drafter.name == "lookup"
    assert drafter.fits("drafter")
    assert reader.does("ask")


def test_options_are_refused(tmp_path):
    entry = ModelEntry("mine", "lookup", "drafter", NoSource(), options={"n": 3})
    with pytest.raises(PluginError, match="no options"):
        loader.convert(entry, tmp_path, tmp_path / "to")
