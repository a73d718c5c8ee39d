from pathlib import Path

import pytest

from as2d_cli.decoding import EMPTY
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import Request
from as2d_cli.engine.inner_drafts import MAX_EARLIER, InnerDrafts
from as2d_cli.engine.messages import ModelRef
from as2d_cli.engine.target_worker import _inner_drafts
from as2d_cli.engine.worker import plugin_errors
from as2d_cli.models import loader
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource
from as2d_cli.testing import ScriptedSession
from as2d_scripted import ScriptedTarget

ENTRY = ModelEntry("silent", "silent", "drafter", NoSource())


class Recorder:
    """An inner drafter that keeps what it is shown."""

    languages = ("en",)
    passages = False

    def __init__(self, answer=(1, 2)):
        self.answer, self.views = answer, []

    def draft(self, view):
        self.views.append(view)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def session(language="en"):
    opened = ScriptedSession([1], prompt=[9], vocab_size=10, max_tokens=5)
    opened.language = language
    return opened


def test_a_window_sees_only_windows_before_it_in_order():
    recorder = Recorder()
    drafts = InnerDrafts(recorder, 10, "scripted")
    for place in ((1, 0), (0, 1), (0, 0), (1, 1)):
        drafts.remember(place, (sum(place),))
    drafts.draft((1, 0), Request(), session())
    assert [(one.group, one.index, one.tokens) for one in recorder.views[0].earlier] == [
        (0, 0, (0,)),
        (0, 1, (1,)),
    ]


def test_the_draft_is_complete_and_ids_that_the_target_lacks_are_harmless():
    reader = InnerDrafts(Recorder([3, 11]), 10, "scripted").draft((0, 0), Request(), session())
    assert reader.snapshot() == 2
    assert reader.complete
    assert reader.ids(0, 2) == [3, 0]


def test_it_is_shown_the_request_and_the_encoder_output():
    recorder, opened = Recorder(), session()
    InnerDrafts(recorder, 10, "scripted").draft((2, 3), Request(prompt="so"), opened)
    view = recorder.views[0]
    assert (view.group, view.index, view.request.prompt) == (2, 3, "so")
    assert view.states is opened.states


def test_in_a_language_that_it_does_not_draft_it_is_not_asked():
    recorder = Recorder()
    assert InnerDrafts(recorder, 10, "scripted").draft((0, 0), Request(), session("de")) is EMPTY
    assert not recorder.views


def test_whatever_it_raises_becomes_an_error_that_can_cross_processes():
    drafts = InnerDrafts(Recorder(ZeroDivisionError("by nought")), 10, "scripted")
    with pytest.raises(DecodeError, match="ZeroDivisionError: by nought"):
        drafts.draft((0, 0), Request(), session())


def test_debugging_plugins_shows_where_a_draft_went_wrong(monkeypatch, capsys):
    for value in ("", "1"):
        monkeypatch.setenv("AS2D_DEBUG_PLUGINS", value)
        with pytest.raises(DecodeError), plugin_errors("drafter"):
            raise ZeroDivisionError("by nought")
        with pytest.raises(DecodeError):
            InnerDrafts(Recorder(ValueError("boo")), 10, "scripted").draft((0, 0), Request(), session())
        shown = capsys.readouterr().err
        assert [shown.count(f'File "{__file__}"') > 1, "boo" in shown, "nought" in shown] == [bool(value)] * 3


def test_a_drafter_that_does_not_say_what_its_drafts_are_costs_no_text(monkeypatch):
    class Silent(Recorder):
        @property
        def passages(self):
            raise ZeroDivisionError("by nought")

    monkeypatch.setattr(loader, "load_inner_drafter", lambda *_: Silent())
    drafts, why_not = _inner_drafts(ScriptedTarget(), ModelRef(ENTRY, Path(), 1))
    assert drafts is None
    assert "by nought" in why_not.message


def test_only_the_latest_windows_are_kept():
    recorder = Recorder()
    drafts = InnerDrafts(recorder, 10, "scripted")
    for index in range(MAX_EARLIER + 5):
        drafts.remember((0, index), (index,))
    drafts.draft((1, 0), Request(), session())
    earlier = recorder.views[0].earlier
    assert (len(earlier), earlier[0].index) == (MAX_EARLIER, 5)


@pytest.mark.parametrize("answer", [[2**40], [None], 7, SystemExit(0)], ids=repr)
def test_whatever_is_wrong_with_a_draft_is_an_error_of_the_draft(answer):
    with pytest.raises(DecodeError, match="the drafter failed"):
        InnerDrafts(Recorder(answer), 10, "scripted").draft((0, 0), Request(), session())
