"""The contract of a target: `as2d_cli.plugin.Target` and `as2d_cli.plugin.TargetSession` as checks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from as2d_cli.decoding.protocols import ConfidentSession, Target, TargetSession
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import WINDOW_S
from as2d_cli.testing.racing import Ids, alone, raced, spoiled
from as2d_cli.testing.windows import Case, check_tokenizer, expect, made_up

_MAX_ROWS = 16
_FEW = 4
"""Different tokens that a text needs: checks would pass on one token said over and over."""


class TargetContract:
    """Subclass it as `Test...` beside a pytest fixture called `target`, a loaded target.

    Override `windows` where made-up ones say nothing; `limit` is how many tokens of a window are looked at,
    `room` how many are put into a session at most.
    """

    limit = 48
    room = 512
    seeds = range(3)

    def windows(self, target: Target) -> Sequence[Case]:
        """Return at least two windows with different texts."""
        return made_up(target.spec)

    def test_every_window_fits(self, target: Target) -> None:
        """Windows have up to 30 s, 3,000 frames."""
        flaw = target.spec.features.flaw(WINDOW_S)
        expect(flaw is None, str(flaw))

    def test_lengths(self, target: Target) -> None:
        """Cache lengths are absolute and count all rows; each row is decided; `max_tokens` rows fit."""
        for case in self.windows(target):
            session = target.open(*case)
            start = len(session.prompt) - 1
            expect(start >= 0, "a session needs a prompt: its last token is the first row")
            expect(session.max_tokens >= 1, f"max_tokens is {session.max_tokens}")
            _has_length(session, start, "when it opens, all but the last token of its prompt")
            rows = [session.prompt[-1], *_anything(target, min(session.max_tokens, self.room) - 1)]
            for at in range(0, len(rows), _MAX_ROWS):
                self._decides_each(target, session, rows[at : at + _MAX_ROWS])
                _has_length(session, start + min(at + _MAX_ROWS, len(rows)), "after a pass, all its rows")
            session.rollback(start + 1)
            _has_length(session, start + 1, "after a rollback, what was asked for")

    def test_batched_equals_single(self, target: Target) -> None:
        """What is decided after a token depends on those before it, not on the rows that run with it."""
        texts = [self._alone(target, case) for case in self.windows(target)]
        varied = max(len(set(text)) for text in texts)
        expect(varied >= _FEW, f"only {varied} different tokens in a window prove little: override `windows`")
        for text, case in zip(texts, self.windows(target), strict=True):
            for count in range(2, _MAX_ROWS + 1):
                session = target.open(*case)
                rows = [session.prompt[-1], *text][: len(text)]
                decided: list[int] = []
                for at in range(0, len(rows), count):
                    decided += session.forward(rows[at : at + count]).tolist()
                expect(decided == text, f"{count} rows together decide otherwise than one by one")

    def test_confidence_is_the_same(self, target: Target) -> None:
        """Log-probabilities, of a target that tells them, do not depend on the rows that run together."""
        for case in self.windows(target):
            text, session = self._alone(target, case), target.open(*case)
            if not isinstance(session, ConfidentSession):
                return
            silence = session.no_speech_prob
            expect(silence is None or 0 <= silence <= 1, f"no_speech_prob is {silence}")
            rows = [session.prompt[-1], *text][: len(text)]
            single = self._logprobs(session, rows, 1)
            expect(max(single) <= 0, f"{max(single)} is no log-probability")
            expect(min(single) < max(single), "all tokens have one log-probability")
            for count in range(2, _MAX_ROWS + 1):
                together = self._logprobs(target.open(*case), rows, count)
                expect(together == single, f"{count} rows together are not as probable as one by one")

    def test_rollback_then_forward(self, target: Target) -> None:
        """After rows have been dropped, all is as if they had never been."""
        for seed, case in ((seed, case) for seed in self.seeds for case in self.windows(target)):
            draw = random.Random(seed)
            text, session = self._alone(target, case), target.open(*case)
            start, done = session.length, 0
            rows = [session.prompt[-1], *text]
            while done < len(text):
                kept = draw.randint(1, min(_MAX_ROWS // 2, len(text) - done))
                wrong = _anything(target, draw.randint(0, min(8, session.max_tokens - done - kept)), seed)
                decided = session.forward([*rows[done : done + kept], *wrong])[:kept].tolist()
                expect(decided == text[done : done + kept], f"after rollbacks token {done} becomes another")
                done += kept
                session.rollback(start + done)
            session.rollback(start)
            again = session.forward(rows[:1]).tolist()
            expect(again == text[:1], "rolled back to where it was opened it decides otherwise")

    def test_sessions_do_not_leak(self, target: Target) -> None:
        """A window is decided as if it were the only one. A session may refuse once another is open."""
        first, second = self.windows(target)[:2]
        texts = [self._alone(target, case) for case in (first, second)]
        expect(texts[0] != texts[1], "both windows have the same text: override `windows`")
        older = target.open(*first)
        begun = alone(older, target.spec.end_id, 3)
        expect(begun == texts[0][:3], "a window is decided otherwise after another one")
        expect(self._alone(target, second) == texts[1], "a half-done window shows in the next one")
        try:
            rest = older.forward(begun[-1:]).tolist()
        except As2dError:
            pass  # one cache, and it is the other session's: well said
        else:
            expect(rest == texts[0][3:4] or len(texts[0]) <= 3, "a window opened later shows in one before")
        expect(self._alone(target, first) == texts[0], "the second window shows in the first, opened anew")

    def test_tokenizer_round_trip(self, target: Target) -> None:
        """Text comes back whole, its ids are the target's, and the end says nothing."""
        tokenizer, spec = target.tokenizer, target.spec
        check_tokenizer(tokenizer)
        expect(0 <= spec.end_id < spec.vocab_size, f"end_id {spec.end_id} is not in the vocabulary")
        expect(tokenizer.decode_bytes([spec.end_id]) == b"", "the end id decodes to text")
        expect(max(tokenizer.encode(" Hello")) < spec.vocab_size, "the tokenizer has ids beyond vocab_size")

    def test_words_of_the_text(self, target: Target) -> None:
        """Words, of a target that knows their times, are the text, in order and within the window."""
        case = self.windows(target)[0]
        if case.request.task == "ask":
            return
        case = Case(case.features, replace(case.request, word_times=True))
        session, duration_s = target.open(*case), 3.0
        tokens = alone(session, target.spec.end_id, self.limit)
        text = [token for token in tokens if token != target.spec.end_id]
        words = session.words(text, duration_s)
        if not words:
            return
        written = [token for word in words for token in word.tokens]
        expect(written == text, "the words' tokens are not those of the text")
        moments = [moment for word in words for moment in (word.start_s, word.end_s)]
        expect(moments == sorted(moments), "words overlap or go back in time")
        expect(moments[0] >= 0 and moments[-1] <= duration_s, "words lie outside of the window")

    def test_lossless_under_random_timing(self, target: Target) -> None:
        """Whatever is drafted and whenever, the loop gives the target's own text, in no more passes."""
        spec = target.spec
        for seed, case in ((seed, case) for seed in self.seeds for case in self.windows(target)):
            draw, text = random.Random(seed), self._alone(target, case)
            draft = spoiled(text, spec.vocab_size, draw)
            ids = Ids(spec.end_id, spec.vocab_size)
            found, passes = raced(target.open(*case), draft, draw, ids, self.limit)
            expect(found == text, f"with a draft the text is another (seed {seed})")
            expect(passes <= len(text), f"{passes} passes for {len(text)} tokens (seed {seed})")

    def _alone(self, target: Target, case: Case) -> list[int]:
        return alone(target.open(*case), target.spec.end_id, self.limit)

    def _logprobs(self, session: TargetSession, rows: Sequence[int], count: int) -> list[float]:
        told: list[float] = []
        assert isinstance(session, ConfidentSession)
        for at in range(0, len(rows), count):
            part = rows[at : at + count]
            session.forward(part)
            told += session.logprobs(len(part)).tolist()
        return told

    def _decides_each(self, target: Target, session: TargetSession, rows: Sequence[int]) -> None:
        decided = np.asarray(session.forward(rows))
        expect(decided.shape == (len(rows),), f"{len(rows)} rows give decisions of shape {decided.shape}")
        expect(np.issubdtype(decided.dtype, np.integer), f"decisions are {decided.dtype}, not integers")
        inside = bool(((decided >= 0) & (decided < target.spec.vocab_size)).all())
        expect(inside, "decisions are not all within vocab_size")


def _has_length(session: TargetSession, length: int, told: str) -> None:
    expect(session.length == length, f"length is {session.length}, not {length}: it counts, {told}")


def _anything(target: Target, count: int, seed: int = 0) -> list[int]:
    """Return ordinary tokens, none the end."""
    draw = random.Random(seed)
    ids = target.tokenizer.encode(" The quick brown fox jumps over the lazy dog, and so on.")
    return [draw.choice(ids) for _ in range(count)]
