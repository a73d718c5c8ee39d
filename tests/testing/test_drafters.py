"""Each check of the contracts of drafters catches a drafter that is broken in just that way."""

import threading
import time

import pytest

from as2d_cli.plugin import END, DraftToken
from as2d_cli.testing import ByteTokenizer, DrafterContract, InnerDrafterContract
from as2d_scripted import Script, ScriptedDrafter, ScriptedTokenizer

CONTRACT, INNER = DrafterContract(), InnerDrafterContract()
SCRIPT = Script(words=20)


class Drafter(ScriptedDrafter):
    """A scripted drafter whose draft is spoiled."""

    def draft(self, features, request):
        return self.spoil(super().draft(features, request))


def broken(spoil, **options):
    return type(spoil.__name__, (Drafter,), {"spoil": lambda self, draft: spoil(draft)})(SCRIPT, **options)


def unknown_id(draft):
    yield from draft
    yield DraftToken(10_000)


def negative_id(draft):
    yield DraftToken(-2)


def not_a_probability(draft):
    yield DraftToken(5, float("nan"))


def goes_on_after_its_end(draft):
    yield DraftToken(END)
    yield from draft


class GoesOnAfterClosing:
    def __init__(self, draft):
        self.draft = draft

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.draft)

    def close(self):
        pass


def will_not_close(draft):
    for token in draft:
        try:
            yield token
        except GeneratorExit:
            yield token


class LeavesAThread(GoesOnAfterClosing):
    def __next__(self):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        return next(self.draft)

    def close(self):
        self.draft.close()


def fails(draft):
    yield next(draft)
    raise ZeroDivisionError("a bug of the drafter")


class Lowers(ScriptedTokenizer):
    def encode(self, text):
        return super().encode(text.lower())


class Remembers(ScriptedDrafter):
    """Begins with the last token that it drafted before."""

    last = ()

    def draft(self, features, request):
        yield from map(DraftToken, self.last)
        for token in super().draft(features, request):
            if token.id != END:
                type(self).last = (token.id,)
            yield token


@pytest.mark.parametrize(
    ("check", "drafter", "told"),
    [
        ("every_window_fits", ScriptedDrafter(SCRIPT, frames=2999), "which windows of 30 s do not fit"),
        ("ids_are_in_the_vocabulary", broken(unknown_id), "has the id 10000"),
        ("ids_are_in_the_vocabulary", broken(negative_id), "has the id -2"),
        ("ids_are_in_the_vocabulary", broken(not_a_probability), "has probability nan"),
        ("the_end_closes_a_draft", broken(goes_on_after_its_end), "goes on after its end"),
        ("closing_a_draft_cancels_it", broken(GoesOnAfterClosing), "a closed draft goes on"),
        ("closing_a_draft_cancels_it", broken(LeavesAThread), "left a thread"),
        ("drafts_do_not_leak", Remembers(SCRIPT), "shows in the next"),
        ("tokenizer_round_trip", broken(iter, tokenizer=Lowers()), "comes back from"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_broken_drafter_is_caught_and_told_of(check, drafter, told):
    with pytest.raises(AssertionError, match=told):
        getattr(CONTRACT, f"test_{check}")(drafter)


def test_a_drafter_that_will_not_close_or_fails_is_caught_by_its_own_error():
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        CONTRACT.test_closing_a_draft_cancels_it(broken(will_not_close))
    with pytest.raises(ZeroDivisionError):
        CONTRACT.test_lossless_under_random_timing(broken(fails))


def test_a_draft_that_nothing_can_cancel_needs_no_closing():
    CONTRACT.test_closing_a_draft_cancels_it(broken(lambda draft: iter(list(draft))))


class Inner:
    """Drafts what was said before, and what was asked."""

    languages = None
    passages = False

    def __init__(self, spoil=lambda ids, view: ids, *, passages=False):
        self.spoil, self.passages = spoil, passages

    def draft(self, view):
        ids = [token for one in view.earlier for token in one.tokens]
        return self.spoil(ids + ByteTokenizer().encode(view.request.prompt or ""), view)


def test_a_sound_inner_drafter_passes_whether_it_drafts_a_text_or_passages():
    for drafter in (Inner(), Inner(passages=True)):
        for check in (name for name in dir(INNER) if name.startswith("test_")):
            getattr(INNER, check)(drafter)


def remembering():
    seen = []
    return Inner(lambda ids, view: seen.append(1) or [*ids, *seen])


@pytest.mark.parametrize(
    ("check", "drafter", "error"),
    [
        ("ids_are_in_the_vocabulary", Inner(lambda ids, view: [*ids, END]), AssertionError),
        ("ids_are_in_the_vocabulary", Inner(lambda ids, view: [*ids, 257]), AssertionError),
        ("drafts_do_not_leak", remembering(), AssertionError),
        (
            "without_states_it_drafts_or_says_why_not",
            Inner(lambda ids, view: view.states.argmax()),
            AttributeError,
        ),
        ("lossless_under_random_timing", Inner(lambda ids, view: [2**40]), OverflowError),
    ],
)
def test_a_broken_inner_drafter_is_caught(check, drafter, error):
    with pytest.raises(error):
        getattr(INNER, f"test_{check}")(drafter)
