"""What is said in a window, and how a drafter mishears it."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from as2d_cli.plugin import Features, Request
from as2d_scripted.tokenizer import WORDS

# Shares of substitutions and deletions among errors, as found in speech recognition; the rest inserts.
_SUBSTITUTED = 0.65
_DELETED = 0.20


@dataclass(frozen=True, slots=True)
class Script:
    """What every window says: `text`, or, if that is empty, `words` words drawn by `seed` and features."""

    text: str = ""
    seed: int = 0
    words: int = 40

    def read(self, features: Features, request: Request) -> list[str]:
        """Return the words of the window with these features, after what the request gives to read."""
        if self.text:
            return self.text.split()
        given = "".join(filter(None, (request.prompt, request.passage, request.question)))
        digest = hashlib.sha256(features.tobytes() + given.encode()).hexdigest()
        # Frequencies fall like Zipf's law so that, as in speech, frequent words and pairs come back.
        weights = [1 / rank for rank in range(1, len(WORDS) + 1)]
        return random.Random(f"{self.seed} {digest}").choices(WORDS, weights, k=self.words)


def mishear(words: list[str], error_rate: float, seed: int) -> list[list[str]]:
    """Return what is heard of each word: with this share, another word, none, or one more."""
    draw = random.Random(f"{seed} {' '.join(words)}")
    heard: list[list[str]] = []
    for word in words:
        kind = draw.random() / error_rate if error_rate else 1.0
        if kind < _SUBSTITUTED:
            heard.append([draw.choice(WORDS)])
        elif kind >= 1:
            heard.append([word])
        elif kind >= _SUBSTITUTED + _DELETED:
            heard.append([word, draw.choice(WORDS)])
        else:
            heard.append([])
    return heard
