"""The contract of a drafter in a process of its own: `as2d_cli.plugin.Drafter` as checks."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import islice

from as2d_cli.decoding import DraftState, DraftStream, Retokenizer, write_draft
from as2d_cli.decoding.byte_tokens import ByteTokenizer
from as2d_cli.decoding.protocols import END, Drafter, DraftToken
from as2d_cli.domain.types import WINDOW_S
from as2d_cli.testing.racing import Ids, raced, spoiled
from as2d_cli.testing.session import ScriptedSession
from as2d_cli.testing.windows import Case, check_tokenizer, expect, made_up

_BYTES = Ids(end=256, size=258)
"""Of a target whose tokens are bytes: the end, and what it begins with."""
_ENDING_S = 1.0


class DrafterContract:
    """Subclass it as `Test...` beside a pytest fixture called `drafter`, a loaded drafter.

    Override `windows` where made-up ones say nothing, and `limit` to decide how many tokens of a draft
    are looked at.
    """

    limit = 48
    seeds = range(3)

    def windows(self, drafter: Drafter) -> Sequence[Case]:
        """Return at least two windows."""
        return made_up(drafter.spec)

    def test_every_window_fits(self, drafter: Drafter) -> None:
        """Windows have up to 30 s, 3,000 frames."""
        flaw = drafter.spec.features.flaw(WINDOW_S)
        expect(flaw is None, str(flaw))

    def test_ids_are_in_the_vocabulary(self, drafter: Drafter) -> None:
        """Each token is one of the tokenizer's text tokens, with a probability, or the end."""
        for case in self.windows(drafter):
            for at, token in enumerate(self._draft(drafter, case)):
                expect(0 < token.probability <= 1, f"token {at} has probability {token.probability}")
                known = token.id == END or (token.id >= 0 and drafter.tokenizer.decode_bytes([token.id]))
                expect(bool(known), f"token {at} has the id {token.id}, which the tokenizer has no text for")

    def test_the_end_closes_a_draft(self, drafter: Drafter) -> None:
        """Nothing comes after `END`."""
        for case in self.windows(drafter):
            draft = drafter.draft(*case)
            for token in islice(draft, self.limit):
                if token.id == END:
                    expect(next(draft, None) is None, "the draft goes on after its end")
                    break
            _close(draft)

    def test_closing_a_draft_cancels_it(self, drafter: Drafter) -> None:
        """A closed iterator is over at once, and leaves no thread at work."""
        before = threading.active_count()
        for case in self.windows(drafter):
            draft = drafter.draft(*case)
            next(draft, None)
            _close(draft)
            expect(next(draft, None) is None or not hasattr(draft, "close"), "a closed draft goes on")
        deadline = time.monotonic() + _ENDING_S
        while threading.active_count() > before and time.monotonic() < deadline:
            time.sleep(0.01)
        expect(threading.active_count() <= before, "a closed draft has left a thread behind")

    def test_drafts_do_not_leak(self, drafter: Drafter) -> None:
        """A window is drafted as if it were the only one, also after a draft that was cancelled."""
        first, second = self.windows(drafter)[:2]
        drafts = [self._ids(drafter, case) for case in (first, second)]
        cancelled = drafter.draft(*first)
        list(islice(cancelled, 3))
        _close(cancelled)
        expect(self._ids(drafter, second) == drafts[1], "a cancelled draft shows in the next")
        expect(self._ids(drafter, first) == drafts[0], "a window is drafted otherwise after another one")

    def test_tokenizer_round_trip(self, drafter: Drafter) -> None:
        """Text comes back whole."""
        check_tokenizer(drafter.tokenizer)

    def test_lossless_under_random_timing(self, drafter: Drafter) -> None:
        """Through the real stream into the real loop: another text never, more passes never."""
        for seed, case in ((seed, case) for seed in self.seeds for case in self.windows(drafter)):
            draw, draft = random.Random(seed), self._published(drafter, case)
            said = spoiled(draft, _BYTES.end, draw)
            text = [*(token for token in said if token != _BYTES.end), _BYTES.end]
            session = ScriptedSession(
                text, prompt=(_BYTES.size - 1,), vocab_size=_BYTES.size, max_tokens=len(text)
            )
            found, passes = raced(session, draft, draw, _BYTES, len(text))
            expect(found == text, f"with this drafter the text is another (seed {seed})")
            expect(passes <= len(text), f"{passes} passes for {len(text)} tokens (seed {seed})")

    def _draft(self, drafter: Drafter, case: Case) -> list[DraftToken]:
        draft = drafter.draft(*case)
        tokens = list(islice(draft, self.limit))
        _close(draft)
        return tokens

    def _ids(self, drafter: Drafter, case: Case) -> list[int]:
        return [token.id for token in self._draft(drafter, case)]

    def _published(self, drafter: Drafter, case: Case) -> list[int]:
        """Return what a target whose tokens are bytes sees of a draft."""
        stream = DraftStream.in_memory(self.limit)
        stream.reset(1)
        retokenizer = Retokenizer(drafter.tokenizer, ByteTokenizer(), _BYTES.size)
        state = write_draft(stream.writer(1), drafter.draft(*case), retokenizer, end_id=_BYTES.end)
        expect(state is not DraftState.FAILED, "the draft failed")
        reader = stream.reader(1, _BYTES.size)
        return reader.ids(0, reader.snapshot())


def _close(draft: Iterator[DraftToken]) -> None:
    """Close a draft as `write_draft` does: iterators that cannot be closed have nothing to cancel."""
    close = getattr(draft, "close", None)
    if close is not None:
        close()
