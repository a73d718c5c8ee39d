"""Rows as a run leaves them, with as little said as a test needs."""

import pytest

from as2d_cli.bench.trials import Results, Staircase, Trial, TrialStep

PROVENANCE = {
    "as2d": "0.1",
    "commit": "abc",
    "plugins": {},
    "target": {"name": "speaker", "files": "1", "options": {}, "threads": 2},
    "drafters": [{"name": "hearer", "files": "2", "options": {}, "threads": 1}],
    "device": "a device",
    "os": "an os",
    "python": "3",
    "runtimes": {"Runtime": "3"},
    "load": 0.1,
    "utc": "2026-01-01T00:00:00Z",
    "command": "as2d bench <clips>",
    "load_s": 1.0,
    "read_s": 0.5,
    "budget": {"drafter": "hearer", "cap": 7, "decode_threads": None, "saving": 0.25},
}


@pytest.fixture
def make_trial():
    """Return a function that makes a trial; a window of `wall_s` that one pass per token filled."""

    def make(mode="target-only", window=0, wall_s=1.0, repeat=0, block=0, **given):
        tokens = given.pop("tokens", (5, 6, 7))
        values = {
            "kind": "plain" if mode == "target-only" else "as2d",
            "drafter": None if mode == "target-only" else "hearer",
            "cap": 0 if mode == "target-only" else 7,
            "alone": False,
            "turn": 0,
            "block_wall_s": wall_s,
            "file": "a.wav",
            "start_s": 30.0 * window,
            "audio_s": 30.0,
            "language": "en",
            "text": " a text",
            "steps": tuple(TrialStep(1, 0, 0, 0, 500 + 10 * i, 10.0) for i in range(len(tokens))),
            "encode_s": wall_s / 2,
            "verify_s": wall_s / 4,
            "control_s": wall_s / 8,
            "draft_s": 0.0,
            "began_s": 100.0 + window,
            "max_tokens": 100,
            "drafted": 0,
            **given,
        }
        return Trial(
            mode=mode, window=window, wall_s=wall_s, repeat=repeat, block=block, tokens=tokens, **values
        )

    return make


@pytest.fixture
def results(make_trial):
    """Return two windows decoded by the target alone and with drafts."""
    drafted = {
        "block_wall_s": 1.0,
        "steps": (TrialStep(2, 4, 1, 5, 400.0, 12.0), TrialStep(1, 2, 0, 3, 415.0, 11.0)),
        "drafted": 6,
        "published_ms": (-50.0, 10.0, 20.0, 30.0, 40.0, 410.0),
        "draft_began_ms": -80.0,
        "peak_bytes": 2_000_000,
    }
    trials = [
        make_trial(window=0, block_wall_s=2.0),
        make_trial(window=1, block_wall_s=2.0),
        make_trial("as2d-7 hearer", window=0, wall_s=0.5, **drafted),
        make_trial("as2d-7 hearer", window=1, wall_s=1.2, **drafted),
    ]
    stairs = Staircase("hearer", {1: 5.0, 8: 10.0}, {1: 6.0, 8: 14.0}, 100.0, 4.0, "2026-01-01T00:00:00Z")
    return Results(PROVENANCE, trials, staircases=[stairs], notes=["a <note>"])
