"""The contract of a drafter in the target's process: `as2d_cli.plugin.InnerDrafter` as checks."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from as2d_cli.decoding.byte_tokens import ByteTokenizer
from as2d_cli.decoding.inner import DraftView, Earlier, InnerDrafter, States
from as2d_cli.decoding.protocols import Tokenizer
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import Request
from as2d_cli.testing.racing import Ids, raced, spoiled
from as2d_cli.testing.session import ScriptedSession
from as2d_cli.testing.windows import expect

_SAID = " It was said before that it will be said again."


class InnerDrafterContract:
    """Subclass it as `Test...` beside a pytest fixture called `drafter`, one loaded for `vocabulary`.

    Set `vocabulary` and `end_id` (all ids up to that are the target's) where a drafter does not work with
    every target, and `states_shape`, (n_positions, width), where it reads the target's encoder output.
    """

    vocabulary: Tokenizer = ByteTokenizer()
    end_id = 256
    states_shape = (1500, 512)
    seeds = range(3)

    def views(self) -> Sequence[DraftView]:
        """Return views of three windows: one with nothing before it, and two of another file."""
        said = (*self.vocabulary.encode(_SAID), self.end_id)
        request = Request("transcribe", language="en", prompt="Oslo, May")
        return [
            DraftView(0, 0, request, self._states(0), []),
            DraftView(1, 0, request, self._states(1), [Earlier(0, 0, said)]),
            DraftView(1, 1, request, self._states(2), [Earlier(0, 0, said), Earlier(1, 0, said[::-1])]),
        ]

    def test_ids_are_in_the_vocabulary(self, drafter: InnerDrafter) -> None:
        """All ids are the target's; the end is its `end_id`, not `END`."""
        for view in self.views():
            ids = drafter.draft(view)
            wrong = [token for token in ids if not 0 <= token <= self.end_id]
            expect(not wrong, f"ids that the target does not have: {wrong[:3]}")

    def test_drafts_do_not_leak(self, drafter: InnerDrafter) -> None:
        """A draft is made of what is in the view, and not of what was in others."""
        views = self.views()
        drafts = [list(drafter.draft(view)) for view in views]
        again = [list(drafter.draft(view)) for view in reversed(views)]
        expect(drafts == again[::-1], "a window is drafted otherwise after other windows")

    def test_without_states_it_drafts_or_says_why_not(self, drafter: InnerDrafter) -> None:
        """Not every target shows its encoder's output; that may be an `As2dError` and no other one."""
        try:
            drafter.draft(DraftView(0, 0, Request(), None, []))
        except As2dError as error:
            expect(bool(error.message), "the error says nothing")

    def test_lossless_under_random_timing(self, drafter: InnerDrafter) -> None:
        """In the real loop: another text never, more passes never."""
        size = self.end_id + 1
        for seed, view in ((seed, view) for seed in self.seeds for view in self.views()):
            draw, draft = random.Random(seed), list(drafter.draft(view))
            base = draft or self.vocabulary.encode(_SAID)
            text = [token for token in spoiled(base, size, draw) if token != self.end_id] + [self.end_id]
            session = ScriptedSession(text, prompt=(self.end_id,), vocab_size=size, max_tokens=len(text))
            ids = Ids(self.end_id, size)
            found, passes = raced(session, draft, draw, ids, len(text), passages=drafter.passages)
            expect(found == text, f"with this drafter the text is another (seed {seed})")
            expect(passes <= len(text), f"{passes} passes for {len(text)} tokens (seed {seed})")

    def _states(self, seed: int) -> States:
        return np.random.default_rng(seed).standard_normal(self.states_shape, dtype=np.float32)
