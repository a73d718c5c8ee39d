"""Real texts with real drafts of them, recorded once, to replay on costs of models that are not at hand.

The file is made by tools/measure/acceptance.py from recordings in the public domain.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

import numpy as np

from as2d_cli.decoding.replay import RecordedWindow
from as2d_cli.domain.types import WINDOW_S
from as2d_cli.engine.measure import PairCosts

FILE = "acceptance.json"


@dataclass(frozen=True, slots=True)
class SpokenWindow:
    """A window's text and draft, as ids of the target that wrote it; both end with its end id."""

    audio_s: float
    tokens: tuple[int, ...]
    draft: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What a pair made of some speech."""

    target: str
    drafter: str
    end_id: int
    vocab_size: int
    windows: tuple[SpokenWindow, ...]

    def on(self, costs: PairCosts) -> list[RecordedWindow]:
        """Return the windows as models with these costs for 30 s of audio would have taken them."""
        return [self._window(window, costs) for window in self.windows]

    def _window(self, window: SpokenWindow, costs: PairCosts) -> RecordedWindow:
        share = window.audio_s / WINDOW_S
        paces = costs.drafter.token_ms * np.arange(1, len(window.draft) + 1)
        return RecordedWindow(
            tokens=window.tokens,
            end_id=self.end_id,
            vocab_size=self.vocab_size,
            max_tokens=len(window.tokens),
            encode_ms=costs.target.encode_ms * share,
            draft=window.draft,
            publish_ms=tuple(paces.tolist()),
            draft_encode_ms=costs.drafter.encode_ms * share,
        )


def recorded_acceptance() -> Acceptance:
    """Return what is shipped."""
    raw = json.loads(resources.files("as2d_cli.bench").joinpath(FILE).read_text(encoding="utf-8"))
    windows = tuple(
        SpokenWindow(float(one["audio_s"]), tuple(one["tokens"]), tuple(one["draft"]))
        for one in raw["windows"]
    )
    return Acceptance(raw["target"], raw["drafter"], raw["end_id"], raw["vocab_size"], windows)
