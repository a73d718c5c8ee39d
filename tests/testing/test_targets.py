"""Each check of the contract of targets catches a target that is broken in just that way."""

from dataclasses import replace

import numpy as np
import pytest

from as2d_cli.plugin import ModelError, Word
from as2d_cli.testing import ScriptedSession, TargetContract
from as2d_scripted import Script, ScriptedTarget, ScriptedTokenizer

CONTRACT = TargetContract()
CHECKS = [name for name in dir(CONTRACT) if name.startswith("test_")]


class Sound:
    """What sessions are when they are not broken."""


class Target(ScriptedTarget):
    """A scripted target whose sessions are of the class `kind`, too."""

    kind = Sound

    def open(self, features, request):
        session = super().open(features, request)
        session.__class__ = type("Session", (self.kind, ScriptedSession), {})
        return session


def broken(session=Sound, **options):
    return type("Broken", (Target,), {"kind": session})(Script(words=20), **options)


class CountsItsPrompt:
    @property
    def length(self):
        return super().length + 1


class DecidesTheLastRowOnly:
    def forward(self, tokens):
        return super().forward(tokens)[-1:]


class DecidesBeyondItsVocabulary:
    def forward(self, tokens):
        return super().forward(tokens) + 10_000


class DecidesFloats:
    def forward(self, tokens):
        return super().forward(tokens).astype(np.float32)


class HasLessRoomThanItSays:
    def forward(self, tokens):
        if self.length + len(tokens) > 200:
            raise ModelError("the cache is full")
        return super().forward(tokens)


class RollsBackOneTooMany:
    def rollback(self, length):
        super().rollback(max(length - 1, len(self.prompt) - 1))


class RowsDisturbEachOther:
    def forward(self, tokens):
        decided = super().forward(tokens)
        return np.where(decided % 7 == 0, decided + 1, decided) if len(tokens) > 4 else decided


class NeverForgets:
    has_dropped = False

    def rollback(self, length):
        self.has_dropped |= length < self.length
        super().rollback(length)

    def forward(self, tokens):
        return (super().forward(tokens) + self.has_dropped) % 256


class TiresAfterSixPasses:
    def forward(self, tokens):
        decided = super().forward(tokens)
        return (decided + 1) % 256 if len(tokens) > 1 and self.passes > 5 else decided


class TellsTimesBeyondTheWindow:
    def words(self, tokens, duration_s):
        return super().words(tokens, duration_s + 1.0)


class TellsWordsOfAnotherText:
    def words(self, tokens, duration_s):
        return (Word(" no", 0.0, 0.1, 1.0, (1, 2)),)


class TellsWordsInDisorder:
    def words(self, tokens, duration_s):
        one, two, *rest = super().words(tokens, duration_s)
        times = {"start_s": two.end_s, "end_s": one.start_s}
        return (replace(one, **times), two, *rest)


class Lowers(ScriptedTokenizer):
    def encode(self, text):
        return super().encode(text.lower())


class Spaces(ScriptedTokenizer):
    """Puts a space before a text as many real ones do, in whichever part of it."""

    def decode_bytes(self, ids):
        return super().decode_bytes(ids).removeprefix(b" ") if len(ids) == 1 else super().decode_bytes(ids)


class SharedCache(Target):
    """One cache for all sessions, and nobody told."""

    latest = None

    def open(self, features, request):
        session = super().open(features, request)
        older = type(self).latest
        if older is not None:
            older._cache, older._text = session._cache, session._text
        type(self).latest = session
        return session


class Remembers(Target):
    """Goes on with what was said last."""

    latest = ()

    def open(self, features, request):
        session = super().open(features, request)
        session._text[5:5] = self.latest
        type(self).latest = session._text[6:7]
        return session


@pytest.mark.parametrize(
    ("check", "target", "told"),
    [
        ("lengths", broken(CountsItsPrompt), "length is 2, not 1"),
        ("lengths", broken(DecidesTheLastRowOnly), r"decisions of shape \(1,\)"),
        ("lengths", broken(DecidesBeyondItsVocabulary), "not all within vocab_size"),
        ("lengths", broken(DecidesFloats), "float32, not integers"),
        ("lengths", broken(RollsBackOneTooMany), "after a rollback"),
        ("batched_equals_single", broken(RowsDisturbEachOther), "5 rows together"),
        ("rollback_then_forward", broken(NeverForgets), "after rollbacks token"),
        ("rollback_then_forward", broken(RollsBackOneTooMany), "after rollbacks token"),
        ("sessions_do_not_leak", SharedCache(Script(words=20)), "opened later shows"),
        ("sessions_do_not_leak", Remembers(Script(words=20)), "half-done window shows"),
        ("tokenizer_round_trip", broken(tokenizer=Lowers()), "comes back from the tokenizer"),
        ("tokenizer_round_trip", broken(tokenizer=Spaces()), "comes back token by token"),
        ("words_of_the_text", broken(TellsTimesBeyondTheWindow), "outside of the window"),
        ("words_of_the_text", broken(TellsWordsOfAnotherText), "not those of the text"),
        ("words_of_the_text", broken(TellsWordsInDisorder), "overlap or go back"),
        ("lossless_under_random_timing", broken(TiresAfterSixPasses), "with a draft the text is another"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind.__name__,
)
def test_a_broken_target_is_caught_and_told_of(check, target, told):
    with pytest.raises(AssertionError, match=told):
        getattr(CONTRACT, f"test_{check}")(target)


def test_a_target_that_cannot_hold_what_it_promises_fails_with_its_own_error():
    with pytest.raises(ModelError, match="the cache is full"):
        CONTRACT.test_lengths(broken(HasLessRoomThanItSays))


def test_a_session_may_refuse_once_another_one_is_open():
    class Refuses(Target):
        latest = None

        def open(self, features, request):
            older, session = type(self).latest, super().open(features, request)
            if older is not None:
                older._cost = self.refuse
            type(self).latest = session
            return session

        def refuse(self, rows):
            raise ModelError("the cache is another session's by now")

    CONTRACT.test_sessions_do_not_leak(Refuses(Script(words=20)))


def test_windows_that_say_the_same_prove_nothing():
    with pytest.raises(AssertionError, match="override `windows`"):
        CONTRACT.test_sessions_do_not_leak(ScriptedTarget(Script(text="always the same")))
    with pytest.raises(AssertionError, match="override `windows`"):
        CONTRACT.test_batched_equals_single(ScriptedTarget(Script(text="no no no")))


@pytest.mark.parametrize("check", CHECKS)
def test_the_class_around_broken_sessions_is_sound_itself(check):
    getattr(CONTRACT, check)(broken())
